#include "studies/report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "output/ticks.hpp"

namespace solenoid::report {
namespace {

// Sizes in units of the view box; the text is legible from a third of the width on (a phone) up to print.
constexpr double width = 480.0;
constexpr double plot_left = 70.0;
constexpr double plot_right = width - 14.0;
constexpr double plot_height = 260.0;
constexpr double below = 50.0;       // for the labels and the title of the x axis
constexpr double legend_row = 20.0;  // height
constexpr double character = 7.4;    // width, about
constexpr int steps = 6;             // between ticks, at most

/// Of Okabe and Ito: distinguishable with any colour vision.
constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
const char* colour_of(int i) { return colours[i % static_cast<int>(std::size(colours))]; }

/// Numbers to positions along an axis.
struct Scale {
  bool logarithmic;
  double lower, upper;  // of the data
  double from, to;      // of the picture
  bool whole = false;   // ticks at whole numbers only

  [[nodiscard]] double operator()(double value) const {
    const double part =
        logarithmic ? std::log10(value / lower) / std::log10(upper / lower) : (value - lower) / (upper - lower);
    return from + part * (to - from);
  }
};

std::vector<double> ticks(const Scale& scale) {
  if (scale.logarithmic) {
    std::vector<double> list;
    constexpr double rounding = 1e-9;
    const double decades = std::log10(scale.upper / scale.lower);
    const int first = static_cast<int>(std::floor(std::log10(scale.lower) + rounding));
    const int last = static_cast<int>(std::ceil(std::log10(scale.upper) - rounding));
    const int step = std::max(1, static_cast<int>(std::ceil(decades / 8.0)));
    for (int i = first; i <= last; i += step) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor > 1.0 && decades > 2.5) continue;
        const double value = factor * std::pow(10.0, i);
        if (value > scale.lower * (1.0 - rounding) && value < scale.upper * (1.0 + rounding)) list.push_back(value);
      }
    }
    return list;
  }
  const double step = std::max(nice_step(scale.upper - scale.lower, steps), scale.whole ? 1.0 : 0.0);
  return multiples(step, scale.lower, scale.upper);
}

std::string tick_label(double value) {
  const double magnitude = std::abs(value);
  if (magnitude != 0.0 && (magnitude < 1e-3 || magnitude >= 1e5)) {
    const double power = std::floor(std::log10(magnitude) + 1e-9);
    const double factor = value / std::pow(10.0, power);
    const std::string exponent = fmt::format("10<tspan dy=\"-5\" font-size=\"10\">{}</tspan>", static_cast<int>(power));
    return std::abs(factor - 1.0) < 1e-6 ? exponent : fmt::format("{:.3g}·{}", factor, exponent);
  }
  return fmt::format("{:.6g}", value);
}

/// Bounds of the data, rounded outward: to ticks, or to 1, 2, 5 times powers of ten.
Scale scale_for(const Axis& axis, const std::vector<double>& values, double from, double to) {
  Scale scale{axis.logarithmic, axis.logarithmic ? 0.1 : 0.0, 1.0, from, to, axis.whole};
  if (!values.empty()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    scale.lower = *low;
    scale.upper = *high;
  }
  if (axis.lower) scale.lower = *axis.lower;
  if (axis.upper) scale.upper = *axis.upper;
  if (scale.logarithmic) {
    const auto rounded = [](double value, bool up) {
      const double power = std::pow(10.0, std::floor(std::log10(value) + 1e-9));
      double result = power;
      for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        if (up && factor * power >= value * 0.9999) return factor * power;
        if (!up && factor * power <= value * 1.0001) result = factor * power;
      }
      return result;
    };
    if (!axis.lower) scale.lower = rounded(scale.lower, false);
    if (!axis.upper) scale.upper = rounded(scale.upper, true);
    if (scale.upper <= scale.lower) scale.upper = 10.0 * scale.lower;
  } else {
    if (scale.upper <= scale.lower) scale.upper = scale.lower + 1.0;
    const double step = nice_step(scale.upper - scale.lower, steps);
    if (!axis.lower) scale.lower = step * std::floor(scale.lower / step + 1e-9);
    if (!axis.upper) scale.upper = step * std::ceil(scale.upper / step - 1e-9);
  }
  return scale;
}

/// A point of a series, of a shape that differs by number.
std::string marker(int kind, const char* colour, double x, double y) {
  constexpr double r = 4.0;
  switch (kind % 4) {
    case 0: return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>", x, y, r, colour);
    case 1:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>", x - 3.6, y - 3.6,
                         7.2, 7.2, colour);
    case 2: return fmt::format("<path d=\"M{:.1f} {:.1f}l5 9h-10z\" fill=\"{}\"/>", x, y - 5.5, colour);
    default: return fmt::format("<path d=\"M{:.1f} {:.1f}l5 5.5l-5 5.5l-5 -5.5z\" fill=\"{}\"/>", x, y - 5.5, colour);
  }
}

struct LegendEntry {
  std::string name;
  std::string symbol;  // drawn around (0, 0)
};

/// The legend above the plot in as many rows as it takes; returns their height.
double add_legend(const std::vector<LegendEntry>& entries, std::string& out) {
  double x = plot_left;
  double y = 14.0;
  bool any = false;
  for (const LegendEntry& entry : entries) {
    if (entry.name.empty()) continue;
    any = true;
    const double needed = 34.0 + character * static_cast<double>(entry.name.size()) + 14.0;
    if (x > plot_left && x + needed > plot_right + 14.0) {
      x = plot_left;
      y += legend_row;
    }
    out += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">{}</g><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
                       x + 13.0, y - 4.5, entry.symbol, x + 31.0, y, escaped(entry.name));
    x += needed;
  }
  return any ? y + 6.0 : 0.0;
}

void add_y_axis(const Scale& scale, const std::string& title, std::string& out) {
  for (const double tick : ticks(scale)) {
    const double y = scale(tick);
    out += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
        plot_left, plot_right, y, y, plot_left - 7.0, y + 4.5, tick_label(tick));
  }
  const double middle = 0.5 * (scale.from + scale.to);
  out += fmt::format("<text transform=\"translate(16 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>", middle,
                     escaped(title));
}

std::string document(const std::string& body, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"13\" fill=\"#222\"><style>.grid{{stroke:#ddd}}.frame{{stroke:#888;fill:none}}</style>{}</svg>\n",
      width, height, body);
}

std::string frame(double top) {
  return fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" class=\"frame\"/>", plot_left, top,
                     plot_right - plot_left, plot_height);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string svg(const LineChart& chart) {
  std::string body;
  std::vector<LegendEntry> legend;
  std::vector<double> xs;
  std::vector<double> ys;
  for (const Series& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      xs.push_back(x);
      ys.push_back(y);
    }
    const char* colour = colour_of(series.colour);
    std::string symbol;
    if (series.line) {
      symbol = fmt::format("<line x1=\"-13\" x2=\"13\" stroke=\"{}\" stroke-width=\"2\"{}/>", colour,
                           series.dashed ? " stroke-dasharray=\"6 4\"" : "");
    }
    if (series.marker >= 0) symbol += marker(series.marker, colour, 0.0, 0.0);
    legend.push_back({series.name, symbol});
  }
  const double top = add_legend(legend, body) + 8.0;
  const Scale x = scale_for(chart.x, xs, plot_left, plot_right);
  const Scale y = scale_for(chart.y, ys, top + plot_height, top);
  add_y_axis(y, chart.y.title, body);
  for (const double tick : ticks(x)) {
    body += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"grid\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>",
        x(tick), top, top + plot_height, top + plot_height + 19.0, tick_label(tick));
  }
  body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
                      0.5 * (plot_left + plot_right), top + plot_height + 41.0, escaped(chart.x.title));
  body += frame(top);
  for (const Series& series : chart.series) {
    const char* colour = colour_of(series.colour);
    if (series.line && series.points.size() > 1) {
      body += "<polyline points=\"";
      for (const auto& [px, py] : series.points) body += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
      body += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>", colour,
                          series.dashed ? " stroke-dasharray=\"6 4\"" : "");
    }
    if (series.marker < 0) continue;
    for (const auto& [px, py] : series.points) body += marker(series.marker, colour, x(px), y(py));
  }
  return document(body, top + plot_height + below);
}

std::string svg(const PointChart& chart) {
  std::string body;
  std::vector<LegendEntry> legend;
  std::vector<double> values;
  for (const PointChart::Values& series : chart.series) {
    legend.push_back({series.name, marker(series.colour, colour_of(series.colour), 0.0, 0.0)});
    for (const auto& value : series.values) {
      if (value) values.push_back(*value);
    }
  }
  const double top = add_legend(legend, body) + 8.0;
  const Scale y = scale_for(chart.y, values, top + plot_height, top);
  add_y_axis(y, chart.y.title, body);
  const double group_width =
      (plot_right - plot_left) / static_cast<double>(std::max<std::size_t>(chart.groups.size(), 1));
  const double spacing = group_width / static_cast<double>(chart.series.size() + 1);
  for (std::size_t group = 0; group < chart.groups.size(); ++group) {
    const double left = plot_left + group_width * static_cast<double>(group);
    if (group > 0) {
      body += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"frame\"/>", left,
                          top, top + plot_height);
    }
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", left + 0.5 * group_width,
                        top + plot_height + 19.0, escaped(chart.groups[group]));
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const PointChart::Values& series = chart.series[i];
      if (group >= series.values.size() || !series.values[group]) continue;
      const double value = *series.values[group];
      body += fmt::format(
          "<g>{}<title>{}: {:.4g}</title></g>",
          marker(series.colour, colour_of(series.colour), left + spacing * static_cast<double>(i + 1), y(value)),
          escaped(series.name), value);
    }
  }
  body += frame(top);
  return document(body, top + plot_height + 30.0);
}

}  // namespace solenoid::report
