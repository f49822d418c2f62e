#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "labels/name_set.h"

// The lattice that says what data is: a product of two chains and two powersets turned upside down.
// Labels combine only by join, which never allows more than either side did.
namespace molly::labels {

enum class Confidentiality : std::uint8_t { public_, internal, confidential, secret };
enum class Integrity : std::uint8_t { trusted, tainted };

std::string_view to_string(Confidentiality confidentiality);
std::string_view to_string(Integrity integrity);
std::optional<Confidentiality> parse_confidentiality(std::string_view text);
std::optional<Integrity> parse_integrity(std::string_view text);

// The default label is the bottom of the lattice: public, trusted, may be anywhere, anybody may read it.
struct Label {
  Confidentiality confidentiality = Confidentiality::public_;
  Integrity integrity = Integrity::trusted;
  NameSet zones;    // where the data may be processed
  NameSet readers;  // members, and roles as "role:NAME", who may read what is derived from it

  bool operator==(const Label&) const = default;
};

// The least label that is at least as strict as both.
Label join(const Label& a, const Label& b);

// True when data labelled `from` may become part of data labelled `to`: `to` is at least as strict.
bool flows_to(const Label& from, const Label& to);

// "internal/trusted/device+lan/*": confidentiality, integrity, zones, readers.
std::string to_string(const Label& label);
Result<Label> parse_label(std::string_view text);

}  // namespace molly::labels
