#include "output/canvas.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace solenoid {

namespace {

// A character as strokes on a grid: digits stand from y = 2 (base line) to 9, small letters to 7, descenders go to 0.
// Strokes are separated by blanks. The first letter says how its points, two digits x y each, are joined:
// l by straight lines, c by a quadratic B-spline from the first to the last point.
struct Glyph {
  char character;
  int width;
  std::string_view strokes;
};

constexpr double gap = 2.2;  // between characters
constexpr double base_line = 2.0;
constexpr double digit_height = 7.0;

constexpr Glyph glyphs[] = {
    {' ', 2, ""},
    {'0', 4, "c290902424929"},
    {'1', 4, "l073932"},
    {'2', 4, "c0709494602 l0242"},
    {'3', 4, "c08194626 c2646421203"},
    {'4', 4, "l390444 l3932"},
    {'5', 4, "l490906 c061747421203"},
    {'6', 4, "c390704 c040242460604"},
    {'7', 4, "l094912"},
    {'8', 4, "c290906464929 c260602424626"},
    {'9', 4, "c474909054547 c474412"},
    {'.', 0, "l0202"},
    {',', 1, "l1200"},
    {'-', 3, "l0535"},
    {'+', 4, "l0545 l2327"},
    {'=', 4, "l0646 l0444"},
    {'|', 0, "l0901"},
    {'Q', 4, "c290902424929 l2541"},
    {':', 0, "l0202 l0606"},
    {'a', 4, "l4742 c454707024245"},
    {'c', 4, "c463707023243"},
    {'d', 4, "l4942 c454707024245"},
    {'e', 4, "l0545 c454707023243"},
    {'g', 4, "c4741301001 c454707024245"},
    {'i', 0, "l0702 l0909"},
    {'l', 0, "l0902"},
    {'m', 6, "l0702 c04073734 l3432 c34376764 l6462"},
    {'n', 4, "l0702 c04074744 l4442"},
    {'o', 4, "c270702424727"},
    {'p', 4, "l0700 c050747420205"},
    {'r', 3, "l0702 c040737"},
    {'s', 3, "c3637070534320203"},
    {'t', 3, "c19131232 l0737"},
    {'u', 4, "l0704 c04024244 l4742"},
    {'v', 4, "l072247"},
    {'x', 4, "l0742 l0247"},
    {'y', 4, "l0722 l4710"},
    {'z', 4, "l07470242"},
};

const Glyph& glyph_of(char character) {
  const auto* found = std::find_if(std::begin(glyphs), std::end(glyphs),
                                   [&](const Glyph& glyph) { return glyph.character == character; });
  return found != std::end(glyphs) ? *found : glyphs[0];
}

// Points on the quadratic B-spline with clamped ends: arcs from midpoint to midpoint of the control polygon.
Polyline spline(const Polyline& control) {
  constexpr int pieces = 8;
  Polyline line{control.front()};
  for (std::size_t i = 1; i + 1 < control.size(); ++i) {
    const Spot from = line.back();
    Spot to = control[i + 1];
    if (i + 2 < control.size()) {
      for (int a = 0; a < 2; ++a) to[a] = 0.5 * (control[i][a] + control[i + 1][a]);
    }
    for (int piece = 1; piece <= pieces; ++piece) {
      const double t = static_cast<double>(piece) / pieces;
      Spot spot;
      for (int a = 0; a < 2; ++a) {
        spot[a] = (1 - t) * (1 - t) * from[a] + 2 * t * (1 - t) * control[i][a] + t * t * to[a];
      }
      line.push_back(spot);
    }
  }
  return line;
}

}  // namespace

template <class Distance>
void Coverage::raise(Spot lower, Spot upper, Distance distance) {
  const int i0 = std::max(0, static_cast<int>(std::floor(lower[0] - 1)));
  const int j0 = std::max(0, static_cast<int>(std::floor(lower[1] - 1)));
  const int i1 = std::min(width_ - 1, static_cast<int>(std::ceil(upper[0] + 1)));
  const int j1 = std::min(height_ - 1, static_cast<int>(std::ceil(upper[1] + 1)));
  for (int j = j0; j <= j1; ++j) {
    for (int i = i0; i <= i1; ++i) {
      float& value = value_[i + static_cast<std::size_t>(width_) * j];
      value = std::max(value, static_cast<float>(std::clamp(0.5 - distance(i + 0.5, j + 0.5), 0.0, 1.0)));
    }
  }
}

void Coverage::stroke(const Polyline& line, double thickness) {
  const double radius = 0.5 * thickness;
  for (std::size_t s = 1; s < line.size(); ++s) {
    const Spot& p = line[s - 1];
    const Spot& q = line[s];
    const double dx = q[0] - p[0];
    const double dy = q[1] - p[1];
    const double square = dx * dx + dy * dy;
    raise({std::min(p[0], q[0]) - radius, std::min(p[1], q[1]) - radius},
          {std::max(p[0], q[0]) + radius, std::max(p[1], q[1]) + radius}, [&](double x, double y) {
            const double along = square == 0.0 ? 0.0 : ((x - p[0]) * dx + (y - p[1]) * dy) / square;
            const double t = std::clamp(along, 0.0, 1.0);
            return std::hypot(x - p[0] - t * dx, y - p[1] - t * dy) - radius;
          });
  }
}

void Coverage::triangle(const std::array<Spot, 3>& corners) {
  Spot lower = corners[0];
  Spot upper = corners[0];
  for (const Spot& corner : corners) {
    for (int a = 0; a < 2; ++a) {
      lower[a] = std::min(lower[a], corner[a]);
      upper[a] = std::max(upper[a], corner[a]);
    }
  }
  const double area = (corners[1][0] - corners[0][0]) * (corners[2][1] - corners[0][1]) -
                      (corners[1][1] - corners[0][1]) * (corners[2][0] - corners[0][0]);
  const double turn = area > 0 ? 1.0 : -1.0;
  raise(lower, upper, [&](double x, double y) {
    double outside = -std::numeric_limits<double>::infinity();  // largest signed distance to an edge
    for (int e = 0; e < 3; ++e) {
      const Spot& p = corners[e];
      const Spot& q = corners[(e + 1) % 3];
      const double cross = (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]);
      outside = std::max(outside, -turn * cross / std::hypot(q[0] - p[0], q[1] - p[1]));
    }
    return outside;
  });
}

void Coverage::text(std::string_view text, Spot at, double height, double thickness) {
  const double unit = height / digit_height;
  for (const char character : text) {
    const Glyph& glyph = glyph_of(character);
    std::string_view rest = glyph.strokes;
    while (!rest.empty()) {
      const std::string_view points = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), points.size() + 1));
      Polyline line;
      for (std::size_t i = 1; i + 1 < points.size(); i += 2) {
        line.push_back({at[0] + unit * (points[i] - '0'), at[1] - unit * (points[i + 1] - '0' - base_line)});
      }
      stroke(points[0] == 'c' ? spline(line) : line, thickness);
    }
    at[0] += unit * (glyph.width + gap);
  }
}

double text_width(std::string_view text, double height) {
  double width = -gap;
  for (const char character : text) width += glyph_of(character).width + gap;
  return width * height / digit_height;
}

void Canvas::paint(const Coverage& coverage, Colour colour, float alpha) {
  for (std::size_t i = 0; i < pixels_.size(); ++i) {
    const float share = alpha * coverage.values()[i];
    for (int c = 0; c < 3; ++c) pixels_[i][c] += share * (colour[c] - pixels_[i][c]);
  }
}

void Canvas::write_png(NewFile& file) const {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(3 * pixels_.size());
  for (const Colour& pixel : pixels_) {
    for (const float value : pixel) {
      bytes.push_back(static_cast<std::uint8_t>(std::lround(255.0F * std::clamp(value, 0.0F, 1.0F))));
    }
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width_;
  image.height = height_;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<char> compressed(size);
  if (png_image_write_to_memory(&image, compressed.data(), &size, 0, bytes.data(), 0, nullptr) == 0) {
    file.fail("compress");
  }
  file.stream().write(compressed.data(), static_cast<std::streamsize>(size));
}

}  // namespace solenoid
