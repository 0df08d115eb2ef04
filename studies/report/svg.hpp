#pragma once
/// \file
/// Charts as SVG text: lines and groups of points over linear or logarithmic axes.

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace solenoid::report {

/// A point of a series: (x, y), both finite, and positive on a logarithmic axis.
using Pair = std::array<double, 2>;

struct Axis {
  std::string title;
  bool logarithmic = false;
  std::optional<double> lower{};  ///< otherwise what the data need, rounded outward
  std::optional<double> upper{};
  bool whole = false;  ///< ticks at whole numbers only
};

/// A series of points. Colours and markers are counted: 0, 1, 2, ...; equal numbers look alike in all charts.
struct Series {
  std::string name;  ///< empty: not in the legend
  std::vector<Pair> points;
  int colour = 0;
  int marker = 0;  ///< -1: none
  bool line = true;
  bool dashed = false;
};

struct LineChart {
  Axis x;
  Axis y;
  std::vector<Series> series;
};

/// Points side by side in groups: for a logarithmic axis, where bars would have a length that means nothing.
struct PointChart {
  Axis y;
  std::vector<std::string> groups;
  struct Values {
    std::string name;
    std::vector<std::optional<double>> values;  ///< one per group; nothing leaves a gap
    int colour = 0;                             ///< and marker
  };
  std::vector<Values> series;
};

/// SVG elements of a fixed aspect ratio that scale with their width. Series without points leave a chart with its axes.
std::string svg(const LineChart& chart);
std::string svg(const PointChart& chart);

/// Text with &, <, > and " replaced, for SVG and HTML.
std::string escaped(const std::string& text);

}  // namespace solenoid::report
