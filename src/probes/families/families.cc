#include <array>

#include "probes/check.h"
#include "probes/families/draws.h"

namespace molly::probes {

namespace {

using Same = bool (*)(std::string_view expected, std::string_view given);

template <Same same>
bool compares(const Task& task, std::string_view answer) {
  return same(task.answer, answer);
}

constexpr auto text = compares<same_text>;
constexpr auto list = compares<same_list>;

constexpr std::array all{
    Family{"arithmetic", "sums and differences to three digits, times table", draw_arithmetic, text},
    Family{"units", "metric units and times, both ways", draw_units, text},
    Family{"iso_date", "a date in words as YYYY-MM-DD", draw_iso_date, text},
    Family{"add_days", "the date some days later", draw_add_days, text},
    Family{"weekday", "the weekday of a date", draw_weekday, text},
    Family{"to_json", "facts in words as a JSON object", draw_to_json, compares<same_json>},
    Family{"json_to_csv", "a list of JSON objects as CSV with a header", draw_json_to_csv, compares<same_lines>},
    Family{"json_lookup", "the value of one member of a JSON object", draw_json_lookup, text},
    Family{"sql", "a question on one table as SQL, checked by running it", draw_sql, accepts_sql},
    Family{"extraction", "the amount, date or address out of a sentence", draw_extraction, text},
    Family{"topic", "the topic of three words", draw_topic, text},
    Family{"word_class", "the noun, verb or adjective among three words", draw_word_class, text},
    Family{"regex", "a pattern for strings described in words, checked on examples", draw_regex, accepts_regex},
    Family{"printf", "a printf format for a described output", draw_printf, accepts_printf},
    Family{"interest", "simple interest in whole units", draw_interest, text},
    Family{"percent_change", "change between two amounts in percent", draw_percent_change, text},
    Family{"exchange", "an amount in another currency at the given rate", draw_exchange, text},
    Family{"sorting", "numbers or words in order", draw_sorting, list},
    Family{"duplicates", "a list without its repetitions", draw_duplicates, list},
    Family{"letters", "upper case, reversal, nth letter, count of a letter", draw_letters, text},
    Family{"initials", "the initials of a name", draw_initials, text},
    Family{"zolt", "a ticket in Zolt, a notation invented here", draw_zolt, text},
    Family{"tarn", "an event in Tarn, a notation invented here", draw_tarn, text},
};

}  // namespace

std::span<const Family> families() { return all; }

}  // namespace molly::probes
