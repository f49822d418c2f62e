#include "members/keys.h"

#include <sodium.h>

#include <condition_variable>
#include <thread>

#include "config/live.h"
#include "members/key_table.h"
#include "members/key_text.h"
#include "members/pepper.h"

namespace molly::members {
namespace {

constexpr std::chrono::milliseconds look_interval(250);

// What verify() reads: whole, and never changed.
struct Snapshot {
  std::unordered_map<std::uint32_t, StoredKey> keys;
};

std::chrono::sys_seconds now_in_seconds() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::unexpected<Error> unauthenticated(std::string sentence) {
  return failure(ErrorCode::unauthenticated, std::move(sentence));
}

KeyHash hash_of(std::string_view text, const base::Secret& pepper) {
  KeyHash hash{};
  const auto bytes = [](std::string_view view) { return reinterpret_cast<const unsigned char*>(view.data()); };
  crypto_generichash(hash.data(), hash.size(), bytes(text), text.size(), bytes(pepper.reveal()), pepper.size());
  return hash;
}

bool is_name(std::string_view text) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return !text.empty() && text.size() <= 100 && std::ranges::none_of(text, control);
}

std::unexpected<Error> refused(std::string field, std::string sentence) {
  return failure(ErrorCode::invalid_request, std::move(sentence), std::move(field));
}

Result<void> check(const NewKey& wanted, std::chrono::sys_seconds now) {
  constexpr std::string_view names = " must be 1 to 100 characters in one line";
  if (!is_name(wanted.label)) return refused("label", "a key's label" + std::string(names));
  if (!wanted.member.empty() && !is_name(wanted.member))
    return refused("member", "a member's name" + std::string(names));
  if (!std::ranges::all_of(wanted.roles, is_name)) return refused("roles", "a role" + std::string(names));
  if (!std::ranges::all_of(wanted.scope.models, is_name))
    return refused("models", "a model's name" + std::string(names));
  if (wanted.expires && *wanted.expires <= now) return refused("expires", "the key would have expired already");
  return {};
}

Key key_for(const NewKey& wanted, std::chrono::sys_seconds now) {
  return Key{.id = {},
             .label = wanted.label,
             .member = wanted.member.empty() ? wanted.label : wanted.member,
             .roles = wanted.roles,
             .scope = wanted.scope,
             .created = now,
             .expires = wanted.expires,
             .revoked = std::nullopt};
}

}  // namespace

struct Keys::State {
  State(store::Database& opened, store::Connection connection, base::Secret secret)
      : database(opened), reader(std::move(connection)), pepper(std::move(secret)) {}

  Result<void> load() {
    const std::lock_guard lock(reader_mutex);
    return load_locked();
  }

  Result<void> load_locked() {
    // The version first: a commit in between shows again at the next look.
    const auto version = reader.data_version();
    if (!version) return std::unexpected(version.error());
    auto stored = read_keys(reader);
    if (!stored) return std::unexpected(std::move(stored.error()));
    Snapshot snapshot;
    for (StoredKey& key : *stored) {
      if (const auto id = parse_key_id(key.key.id)) snapshot.keys.emplace(*id, std::move(key));
    }
    live.replace(std::move(snapshot));
    seen_version = *version;
    return {};
  }

  // A database that cannot be read just now leaves the keys as they were; the next look tries again.
  void look() {
    const std::lock_guard lock(reader_mutex);
    const auto version = reader.data_version();
    if (version && *version != seen_version) (void)load_locked();
  }

  void follow() {
    std::unique_lock lock(stop_mutex);
    while (!stop_changed.wait_for(lock, look_interval, [&] { return stopping; })) {
      lock.unlock();
      look();
      lock.lock();
    }
  }

  store::Database& database;
  std::mutex reader_mutex;
  store::Connection reader;
  std::int64_t seen_version = 0;
  base::Secret pepper;
  config::Live<Snapshot> live{Snapshot{}};

  std::mutex stop_mutex;
  std::condition_variable stop_changed;
  bool stopping = false;
  std::thread follower;
};

Keys::Keys(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->follower = std::thread([state = state_.get()] { state->follow(); });
}

Keys::~Keys() {
  {
    const std::lock_guard lock(state_->stop_mutex);
    state_->stopping = true;
  }
  state_->stop_changed.notify_one();
  state_->follower.join();
}

Result<std::unique_ptr<Keys>> Keys::open(const std::filesystem::path& keys_folder, store::Database& database) {
  if (::sodium_init() < 0) return failure(ErrorCode::internal, "the cryptography library could not start");
  auto reader = database.reader();
  if (!reader) return std::unexpected(std::move(reader.error()));
  const auto stored = read_keys(*reader);
  if (!stored) return std::unexpected(stored.error());
  // A new pepper beside old keys would make all of them unknown without a word.
  const auto use = stored->empty() ? PepperUse::create_when_absent : PepperUse::existing;
  auto pepper = open_pepper(keys_folder / "pepper", use);
  if (!pepper) return std::unexpected(std::move(pepper.error()));
  auto state = std::make_unique<State>(database, std::move(*reader), std::move(*pepper));
  if (auto loaded = state->load(); !loaded) return std::unexpected(std::move(loaded.error()));
  return std::unique_ptr<Keys>(new Keys(std::move(state)));
}

Result<CreatedKey> Keys::create(const NewKey& wanted) {
  const auto now = now_in_seconds();
  if (auto sound = check(wanted, now); !sound) return std::unexpected(std::move(sound.error()));
  StoredKey stored{key_for(wanted, now), {}};
  SecretBytes secret{};
  ::randombytes_buf(secret.data(), secret.size());
  Result<void> written = failure(ErrorCode::conflict, "");
  base::Secret text;
  // Ids are short enough to meet twice in a lifetime.
  for (int attempt = 0; attempt < 5 && !written && written.error().code == ErrorCode::conflict; ++attempt) {
    const std::uint32_t id = ::randombytes_random();
    text = format_key(id, secret);
    stored.key.id = format_key_id(id);
    stored.hash = hash_of(parse_key(text.reveal()).key->hashed, state_->pepper);
    written = state_->database.writer().write(
        [&stored](store::Connection& connection) { return insert_key(connection, stored); });
  }
  base::wipe(secret.data(), secret.size());
  if (!written) return std::unexpected(std::move(written.error()));
  if (auto loaded = reload(); !loaded) return std::unexpected(std::move(loaded.error()));
  return CreatedKey{std::move(stored.key), std::move(text)};
}

Result<std::vector<Key>> Keys::list() const {
  const std::lock_guard lock(state_->reader_mutex);
  auto stored = read_keys(state_->reader);
  if (!stored) return std::unexpected(std::move(stored.error()));
  std::vector<Key> out;
  for (StoredKey& key : *stored) out.push_back(std::move(key.key));
  return out;
}

Result<void> Keys::revoke(std::string_view id) {
  // People paste whole keys: say what is wanted, and do not repeat it.
  if (!parse_key_id(id)) return refused("id", "a key's id is 8 hexadecimal digits, as molly keys list shows it");
  auto done = state_->database.writer().write([name = std::string(id)](store::Connection& connection) {
    return revoke_key(connection, name, now_in_seconds());
  });
  if (!done) return done;
  return reload();
}

Result<std::shared_ptr<const Key>> Keys::verify(std::string_view presented) const {
  const ParsedKey parsed = parse_key(presented);
  if (!parsed.key) {
    return unauthenticated(parsed.fault == KeyFault::mistyped
                               ? "the key was mistyped or cut short: its checksum does not fit"
                               : "this is not a Molly key: one begins with molly_ (see: molly keys create)");
  }
  const KeyHash hash = hash_of(parsed.key->hashed, state_->pepper);
  const auto snapshot = state_->live.snapshot();
  const auto found = snapshot->keys.find(parsed.key->id);
  if (found == snapshot->keys.end() || ::sodium_memcmp(found->second.hash.data(), hash.data(), hash.size()) != 0) {
    return unauthenticated("the key is not known here");
  }
  const Key& key = found->second.key;
  if (key.revoked) return unauthenticated("the key " + key.id + " was revoked");
  if (!key.usable_at(now_in_seconds())) return unauthenticated("the key " + key.id + " has expired");
  return std::shared_ptr<const Key>(snapshot, &key);
}

bool Keys::any_key_exists() const {
  const auto snapshot = state_->live.snapshot();
  const auto now = now_in_seconds();
  return std::ranges::any_of(snapshot->keys, [&](const auto& entry) { return entry.second.key.usable_at(now); });
}

Result<void> Keys::reload() { return state_->load(); }

}  // namespace molly::members
