#include "training/plot.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>

namespace molly::training {
namespace {

constexpr double width = 640;
constexpr double height = 360;
constexpr double left = 60;
constexpr double right = 620;
constexpr double top = 30;
constexpr double bottom = 310;
constexpr std::string_view train_colour = "#1f77b4";
constexpr std::string_view held_out_colour = "#d62728";

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

// 1, 2 or 5 times a power of ten, so that about five ticks fit.
double tick_distance(const Range& range) {
  const double rough = (range.most - range.least) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

// One axis: from numbers to places in the picture.
struct Axis {
  Range range;
  double step = 1;
  double from = 0;
  double to = 0;

  Axis(Range values, double from_place, double to_place) : range(values), from(from_place), to(to_place) {
    if (!(range.least <= range.most)) range = {0, 1};
    if (range.least == range.most) range.most += 1;
    step = tick_distance(range);
    range.least = std::floor(range.least / step) * step;
    range.most = std::ceil(range.most / step) * step;
  }

  double place(double value) const { return from + (value - range.least) / (range.most - range.least) * (to - from); }

  std::vector<double> ticks() const {
    std::vector<double> out;
    const auto count = static_cast<int>(std::lround((range.most - range.least) / step));
    for (int i = 0; i <= count; ++i) out.push_back(range.least + i * step);
    return out;
  }
};

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return std::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string line(double x1, double y1, double x2, double y2, std::string_view colour, double thickness) {
  return std::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", x1, y1, x2,
      y2, colour, thickness);
}

std::string axes(const Axis& steps, const Axis& losses) {
  std::string out;
  for (const double tick : losses.ticks()) {
    out += line(left, losses.place(tick), right, losses.place(tick), "#dddddd", 1);
    out += label(left - 6, losses.place(tick) + 4, "end", std::format("{:.6g}", tick));
  }
  for (const double tick : steps.ticks()) {
    out += line(steps.place(tick), bottom, steps.place(tick), bottom + 5, "#000000", 1);
    out += label(steps.place(tick), bottom + 18, "middle", std::format("{:.6g}", tick));
  }
  out += line(left, bottom, right, bottom, "#000000", 1) + line(left, top, left, bottom, "#000000", 1);
  out += label((left + right) / 2, height - 10, "middle", "step");
  return out + label(left, top - 12, "start", "loss (nats per token)");
}

std::string polyline(const std::string& points, std::string_view colour) {
  if (points.empty()) return {};
  return std::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n", colour, points);
}

std::string curve(const std::vector<LossPoint>& points, const Axis& steps, const Axis& losses,
                  std::string_view colour) {
  std::string out;
  std::string run;
  for (const LossPoint& point : points) {
    if (std::isfinite(point.loss)) {
      run += std::format("{}{:.1f},{:.1f}", run.empty() ? "" : " ", steps.place(static_cast<double>(point.step)),
                         losses.place(point.loss));
    } else {
      out += polyline(run, colour);
      run.clear();
    }
  }
  return out + polyline(run, colour);
}

std::string legend(double y, std::string_view colour, std::string_view name) {
  return line(right - 130, y, right - 106, y, colour, 2) + label(right - 100, y + 4, "start", name);
}

}  // namespace

std::string plot_loss(const LossCurves& curves) {
  Range step_range;
  Range loss_range;
  for (const auto* points : {&curves.train, &curves.held_out}) {
    for (const LossPoint& point : *points) {
      step_range.include(static_cast<double>(point.step));
      if (std::isfinite(point.loss)) loss_range.include(point.loss);
    }
  }
  const Axis steps(step_range, left, right);
  const Axis losses(loss_range, bottom, top);
  std::string out = std::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      width, height);
  out += axes(steps, losses);
  out += curve(curves.train, steps, losses, train_colour);
  out += curve(curves.held_out, steps, losses, held_out_colour);
  out += legend(top + 8, train_colour, "training");
  if (!curves.held_out.empty()) out += legend(top + 26, held_out_colour, "held out");
  return out + "</svg>\n";
}

}  // namespace molly::training
