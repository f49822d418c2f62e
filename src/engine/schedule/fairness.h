#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace molly::engine {

struct Sequence;

// Virtual token counters (Sheng et al., Fairness in Serving Large Language Models, arXiv 2401.00588, section 4):
// whoever has had the least service goes first. A counter is lifted to the least of the active ones when its owner
// becomes active, so that nobody saves up service while away.
struct Account {
  double served = 0;         // weighted tokens
  std::uint32_t active = 0;  // sequences that wait or run
};
struct MemberAccount : Account {
  std::map<std::string, Account> adapters;  // by computation
};

class Fairness {
 public:
  void enter(Sequence& sequence);
  void leave(Sequence& sequence);
  static void charge_prompt(Sequence& sequence, std::uint32_t tokens);
  static void charge_output(Sequence& sequence, std::uint32_t tokens);

 private:
  std::map<std::string, MemberAccount> members_;
};

// Priority, the member's service, within the member what was interrupted, the adapter's service, arrival.
bool goes_before(const Sequence& left, const Sequence& right);

// Divides `budget` evenly, but to none more than it wants; what is left over goes to the others (max-min fairness).
std::vector<std::uint32_t> divide_evenly(std::uint32_t budget, const std::vector<std::uint32_t>& wants);

}  // namespace molly::engine
