#include "engine/schedule/fairness.h"

#include <algorithm>
#include <tuple>

#include "engine/schedule/sequence.h"

namespace molly::engine {
namespace {

// As in the paper's experiments, after what providers charge.
constexpr double weight_of_prompt = 1;
constexpr double weight_of_output = 2;

template <class Accounts>
double least_served(const Accounts& accounts) {
  double least = -1;
  for (const auto& [name, account] : accounts) {
    if (account.active > 0 && (least < 0 || account.served < least)) least = account.served;
  }
  return least;
}

template <class Accounts>
auto& enter_account(Accounts& accounts, const std::string& name) {
  auto& account = accounts[name];
  if (account.active == 0) account.served = std::max(account.served, least_served(accounts));
  ++account.active;
  return account;
}

// Forgets what no longer matters: all accounts when nobody is owed anything, and those that entering would lift anyway.
template <class Accounts>
void leave_account(Accounts& accounts, Account& account) {
  --account.active;
  const double least = least_served(accounts);
  std::erase_if(accounts, [&](const auto& entry) {
    return entry.second.active == 0 && (least < 0 || entry.second.served <= least);
  });
}

void charge(Sequence& sequence, double amount) {
  sequence.member->served += amount;
  sequence.adapter_account->served += amount;
}

}  // namespace

void Fairness::enter(Sequence& sequence) {
  sequence.member = &enter_account(members_, sequence.request.member);
  sequence.adapter_account = &enter_account(sequence.member->adapters, sequence.key.computation);
}

void Fairness::leave(Sequence& sequence) {
  leave_account(sequence.member->adapters, *sequence.adapter_account);
  leave_account(members_, *sequence.member);
  sequence.member = nullptr;
  sequence.adapter_account = nullptr;
}

void Fairness::charge_prompt(Sequence& sequence, std::uint32_t tokens) { charge(sequence, weight_of_prompt * tokens); }
void Fairness::charge_output(Sequence& sequence, std::uint32_t tokens) { charge(sequence, weight_of_output * tokens); }

bool goes_before(const Sequence& left, const Sequence& right) {
  const auto rank = [](const Sequence& sequence) {
    return std::tuple(-std::int64_t{sequence.request.priority}, sequence.member->served,
                      sequence.timings.preemptions == 0, sequence.adapter_account->served, sequence.id);
  };
  return rank(left) < rank(right);
}

std::vector<std::uint32_t> divide_evenly(std::uint32_t budget, const std::vector<std::uint32_t>& wants) {
  std::vector<std::uint32_t> shares(wants.size(), 0);
  while (budget > 0) {
    std::vector<std::size_t> unsatisfied;
    for (std::size_t i = 0; i < wants.size(); ++i) {
      if (shares[i] < wants[i]) unsatisfied.push_back(i);
    }
    if (unsatisfied.empty()) break;
    const auto each = std::max(budget / static_cast<std::uint32_t>(unsatisfied.size()), 1U);
    for (const auto i : unsatisfied) {
      const auto given = std::min({each, wants[i] - shares[i], budget});
      shares[i] += given;
      budget -= given;
    }
  }
  return shares;
}

}  // namespace molly::engine
