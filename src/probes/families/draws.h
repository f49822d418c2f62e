#pragma once

#include <string_view>

#include "probes/probe.h"

// One generator a family, and the checkers of those families that compare more than text.
namespace molly::probes {

Draft draw_arithmetic(Random& random, Language language);
Draft draw_units(Random& random, Language language);
Draft draw_iso_date(Random& random, Language language);
Draft draw_add_days(Random& random, Language language);
Draft draw_weekday(Random& random, Language language);
Draft draw_to_json(Random& random, Language language);
Draft draw_json_to_csv(Random& random, Language language);
Draft draw_json_lookup(Random& random, Language language);
Draft draw_sql(Random& random, Language language);
Draft draw_extraction(Random& random, Language language);
Draft draw_topic(Random& random, Language language);
Draft draw_word_class(Random& random, Language language);
Draft draw_regex(Random& random, Language language);
Draft draw_printf(Random& random, Language language);
Draft draw_interest(Random& random, Language language);
Draft draw_percent_change(Random& random, Language language);
Draft draw_exchange(Random& random, Language language);
Draft draw_sorting(Random& random, Language language);
Draft draw_duplicates(Random& random, Language language);
Draft draw_letters(Random& random, Language language);
Draft draw_initials(Random& random, Language language);
Draft draw_zolt(Random& random, Language language);
Draft draw_tarn(Random& random, Language language);

// Runs both queries on the same filled database: equal rows, in equal order where the task's own query orders them.
bool accepts_sql(const Task& task, std::string_view answer);
// Whether the pattern matches the strings that the key describes and none of those next to them.
bool accepts_regex(const Task& task, std::string_view answer);
// Equal directives, whatever the order of their flags; %i is %d.
bool accepts_printf(const Task& task, std::string_view answer);

}  // namespace molly::probes
