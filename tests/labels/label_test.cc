#include "labels/label.h"

#include <gmock/gmock.h>

#include "labels/packed.h"

namespace molly::labels {
namespace {

using ::testing::ElementsAre;

// Every subset of three names and the set of all names.
std::vector<NameSet> some_sets() {
  std::vector<NameSet> sets{NameSet::all()};
  for (int mask = 0; mask < 8; ++mask) {
    std::vector<std::string> names;
    if (mask & 1) names.emplace_back("device");
    if (mask & 2) names.emplace_back("eu");
    if (mask & 4) names.emplace_back("lan");
    sets.push_back(NameSet::of(std::move(names)));
  }
  return sets;
}

std::vector<Label> some_labels() {
  std::vector<Label> labels;
  for (const auto confidentiality : {Confidentiality::public_, Confidentiality::confidential})
    for (const auto integrity : {Integrity::trusted, Integrity::tainted})
      for (const NameSet& zones : some_sets())
        for (const NameSet& readers : {NameSet::all(), NameSet::of({"ana"}), NameSet::of({"ana", "role:analyst"})})
          labels.push_back({confidentiality, integrity, zones, readers});
  return labels;
}

TEST(Label, join_is_the_least_upper_bound) {
  const std::vector<Label> labels = some_labels();
  for (const Label& a : labels) {
    EXPECT_EQ(join(a, a), a);
    for (const Label& b : labels) {
      const Label joined = join(a, b);
      ASSERT_EQ(joined, join(b, a));
      ASSERT_TRUE(flows_to(a, joined) && flows_to(b, joined));
      ASSERT_EQ(flows_to(a, b), joined == b);
      ASSERT_EQ(flows_to(a, b) && flows_to(b, a), a == b);
    }
  }
}

TEST(Label, join_does_not_depend_on_the_order_of_joining) {
  const std::vector<Label> labels = some_labels();
  for (std::size_t i = 0; i < labels.size(); ++i)
    for (std::size_t j = 0; j < labels.size(); ++j) {
      const Label& c = labels[(i * 7 + j * 13) % labels.size()];
      ASSERT_EQ(join(join(labels[i], labels[j]), c), join(labels[i], join(labels[j], c)));
    }
}

TEST(Label, bottom_flows_everywhere) {
  for (const Label& label : some_labels()) EXPECT_TRUE(flows_to(Label{}, label));
}

TEST(Label, the_packed_form_decides_as_the_named_form) {
  const auto pack = [](const Label& label) {
    PackedLabel packed{label.confidentiality, label.integrity};
    if (label.zones.is_all()) return packed;
    packed.zones = 0;
    for (const auto& [name, bit] : {std::pair("device", 0), {"eu", 1}, {"lan", 2}})
      if (label.zones.contains(name)) packed.zones |= 1u << bit;
    return packed;
  };
  std::vector<Label> labels = some_labels();
  for (Label& label : labels) label.readers = NameSet::all();
  for (const Label& a : labels)
    for (const Label& b : labels) {
      ASSERT_EQ(pack(join(a, b)), join(pack(a), pack(b)));
      ASSERT_EQ(flows_to(a, b), flows_to(pack(a), pack(b)));
    }
}

TEST(Label, text_form_round_trips) {
  for (const Label& label : some_labels()) {
    const auto parsed = parse_label(to_string(label));
    ASSERT_TRUE(parsed) << to_string(label);
    EXPECT_EQ(*parsed, label);
  }
  EXPECT_EQ(to_string(Label{}), "public/trusted/*/*");
  EXPECT_EQ(
      to_string(Label{Confidentiality::secret, Integrity::tainted, NameSet::of({"lan", "device"}), NameSet::none()}),
      "secret/tainted/device+lan/-");
}

TEST(Label, malformed_texts_are_refused) {
  for (const char* text : {"", "public", "public/trusted/*", "public/trusted/*/*/", "Public/trusted/*/*",
                           "open/trusted/*/*", "public/clean/*/*", "public/trusted//*", "public/trusted/e u/*",
                           "public/trusted/eu+/*", "public/trusted/*+eu/*"})
    EXPECT_FALSE(parse_label(text)) << text;
}

TEST(NameSet, names_are_sorted_and_unique) {
  EXPECT_THAT(NameSet::of({"lan", "eu", "lan"}).names(), ElementsAre("eu", "lan"));
  EXPECT_EQ(NameSet::of({"a"}), NameSet::of({"a", "a"}));
}

TEST(NameSet, all_and_none_differ) {
  EXPECT_TRUE(NameSet::all().contains("anything"));
  EXPECT_FALSE(NameSet::none().contains("anything"));
  EXPECT_NE(NameSet::all(), NameSet::none());
  EXPECT_FALSE(is_subset(NameSet::all(), NameSet::of({"a"})));
  EXPECT_TRUE(is_subset(NameSet::none(), NameSet::of({"a"})));
}

TEST(NameSet, lists_of_headers_parse) {
  EXPECT_EQ(*parse_name_set("device, lan"), NameSet::of({"device", "lan"}));
  EXPECT_EQ(*parse_name_set(" * "), NameSet::all());
  EXPECT_EQ(*parse_name_set("-"), NameSet::none());
  EXPECT_FALSE(parse_name_set(""));
  EXPECT_FALSE(parse_name_set("a,,b"));
  EXPECT_FALSE(parse_name_set(std::string(65, 'a')));
}

}  // namespace
}  // namespace molly::labels
