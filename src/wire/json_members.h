#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/json.h"
#include "wire/json_reader.h"

// How a codec says what members an object has: a table of names, rules and readers.
namespace molly::wire {

enum class Rule : std::uint8_t {
  optional,      // null goes to the extra members
  sized,         // null, "", [] and {} go to the extra members: the typed form has no place for them
  null_is_none,  // null is the same as absent
  any,           // read as it is, null too
  required,      // must be there; read as it is
};

template <class T>
struct Member {
  std::string_view name;
  Rule rule;
  void (*read)(JsonReader&, T&);
};

inline void keep(JsonReader& in, std::string_view key, ExtraFields& extra) {
  extra.emplace_back(std::string(key), in.raw_json());
}

// Refuses a name that is there twice: two readers of the same bytes must not see two requests.
void refuse_duplicates(JsonReader& in, const ExtraFields& extra);

template <class T>
void read_member(JsonReader& in, const Member<T>& member, T& into, ExtraFields& extra) {
  if (member.rule == Rule::null_is_none && in.at_null()) return in.skip();
  const bool may_keep = member.rule == Rule::optional || member.rule == Rule::sized;
  if (may_keep && (in.at_null() || (member.rule == Rule::sized && in.at_empty()))) return keep(in, member.name, extra);
  member.read(in, into);
}

// Reads an object: members in the table by their readers, others into `extra`.
template <class T, std::size_t N>
void read_object(JsonReader& in, const std::array<Member<T>, N>& members, T& into, ExtraFields& extra) {
  static_assert(N <= 64);
  std::uint64_t seen = 0;
  in.object([&](std::string_view key) {
    std::size_t at = 0;
    while (at < N && members[at].name != key) ++at;
    if (at == N) return keep(in, key, extra);
    const std::uint64_t bit = std::uint64_t{1} << at;
    if ((seen & bit) != 0) return in.fail("is given twice");
    seen |= bit;
    read_member(in, members[at], into, extra);
  });
  for (std::size_t at = 0; at < N; ++at) {
    const bool missing = (seen & (std::uint64_t{1} << at)) == 0;
    if (missing && members[at].rule == Rule::required) in.fail_member(members[at].name, "is required");
  }
  if (extra.size() > 1) refuse_duplicates(in, extra);
}

}  // namespace molly::wire
