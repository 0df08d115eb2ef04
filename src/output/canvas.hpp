#pragma once
/// \file
/// A small antialiased raster: strokes, triangles and text, written as PNG.

#include <array>
#include <string_view>
#include <vector>

#include "base/new_file.hpp"

namespace solenoid {

/// A place on the canvas in pixels, y downwards; pixel (i, j) covers [i, i + 1] x [j, j + 1].
using Spot = std::array<double, 2>;
using Polyline = std::vector<Spot>;
/// Red, green, blue in [0, 1].
using Colour = std::array<float, 3>;

/// How much of each pixel a drawing covers. Overlaps count once, so that a translucent drawing is even.
class Coverage {
 public:
  Coverage(int width, int height) : width_(width), height_(height), value_(static_cast<std::size_t>(width) * height) {}

  /// A line with round ends and joints.
  void stroke(const Polyline& line, double thickness);
  void triangle(const std::array<Spot, 3>& corners);
  /// Text in a stroke font whose digits are `height` pixels high; `at` is the left end of the base line.
  /// Characters: those that the pictures' labels need.
  void text(std::string_view text, Spot at, double height, double thickness);

  [[nodiscard]] const std::vector<float>& values() const { return value_; }

 private:
  /// Raises the coverage of the pixels in a box to clamp(1/2 - distance(pixel centre)).
  template <class Distance>
  void raise(Spot lower, Spot upper, Distance distance);

  int width_;
  int height_;
  std::vector<float> value_;
};

/// Width of a text in pixels.
double text_width(std::string_view text, double height);

class Canvas {
 public:
  Canvas(int width, int height, Colour background)
      : width_(width), height_(height), pixels_(static_cast<std::size_t>(width) * height, background) {}

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] Colour& pixel(int i, int j) { return pixels_[i + static_cast<std::size_t>(width_) * j]; }
  [[nodiscard]] Coverage coverage() const { return {width_, height_}; }
  void paint(const Coverage& coverage, Colour colour, float alpha = 1.0F);
  void write_png(NewFile& file) const;

 private:
  int width_;
  int height_;
  std::vector<Colour> pixels_;
};

}  // namespace solenoid
