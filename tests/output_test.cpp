#include "solenoid/output.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <png.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <sstream>

#include "base/host_vector.hpp"
#include "base/new_file.hpp"
#include "interpolate.hpp"
#include "output/canvas.hpp"
#include "output/streamlines.hpp"
#include "output/ticks.hpp"
#include "problem/names.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"

// The Python that has VTK: Debian's python3-vtk9 belongs to the system's.
#ifndef SOLENOID_PYTHON
#define SOLENOID_PYTHON "/usr/bin/python3"
#endif

namespace solenoid {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "solenoid-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

Solution swirl(int dim, int order, bool linear = false) {
  Problem p;
  p.mesh.dim = dim;
  p.mesh.cells = {3, 2, dim == 3 ? 2 : 1};
  p.mesh.upper = {1.5, 1.0, 1.0};
  p.mesh.holes = {{{1, 0, 0}, {2, 1, 1}}};
  p.mesh.refine = 1;
  p.order = order;
  constexpr double pi = std::numbers::pi;
  if (linear) {
    return test::interpolate(p,
                             {[](const Point& x) { return x[0] - 0.5 * x[1]; }, [](const Point& x) { return 1 + x[0]; },
                              [](const Point& x) { return x[2]; }},
                             [](const Point& x) { return x[0] + x[1]; });
  }
  return test::interpolate(p,
                           {[](const Point& x) { return std::sin(pi * x[0]) * std::cos(pi * x[1]); },
                            [](const Point& x) { return -std::cos(pi * x[0]) * std::sin(pi * x[1]); },
                            [](const Point& x) { return 0.2 * x[0] * x[1]; }},
                           [](const Point& x) { return std::exp(x[0] + x[1] * x[2]); });
}

// Poisson's equation; every mode of every cell is in use.
Solution scalar(int dim, int order) {
  Problem p = swirl(dim, order).problem();
  p.equation = EquationKind::poisson;
  const auto grid = std::make_shared<const Grid>(p.mesh, p.boundary);
  const int record = record_size(dim, order, p.equation);
  HostVector values = zeros(std::int64_t{grid->layout().storage()} * record);
  for (const Record cell : grid->layout().owned_cells()) {
    for (int i = 0; i < record; ++i) values[record_offset(cell, record) + interleave * i] = std::sin(cell + 0.3 * i);
  }
  return {p, grid, std::move(values)};
}

// Random points inside cells with the solution's values, as vtu_read.py expects them.
// Values of other data at a point, with their names.
struct Others {
  std::vector<std::string> names;
  std::function<std::vector<double>(const Point&)> at;
};

Others fields_of(const Solution& s, const std::vector<FlowField>& fields) {
  Others others{
      {}, [&s, fields](const Point& x) {
        std::vector<double> values;
        for (const FlowField field : fields) {
          const FieldValue value = s.flow_field(field, {&x, 1})[0];
          const bool tensor = field == FlowField::stress || field == FlowField::strain_rate;
          const bool vector = field == FlowField::vorticity && s.grid().dim() == 3;
          const int first = field == FlowField::vorticity && s.grid().dim() == 2 ? 2 : 0;
          values.insert(values.end(), value.begin() + first, value.begin() + (tensor ? 6 : vector ? 3 : first + 1));
        }
        return values;
      }};
  for (const FlowField field : fields) others.names.emplace_back(name_of(field));
  return others;
}

void write_probes(const Solution& s, const fs::path& file, const Others& others) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> inside(0.05, 0.95);
  std::ofstream out(file);
  out.precision(17);
  for (int i = 0; i < 40; ++i) {
    const auto cell = static_cast<Record>(random() % s.grid().layout().owned_cells().size());
    Point x = s.grid().corner(cell);
    for (int a = 0; a < s.grid().dim(); ++a) x[a] += s.grid().widths(cell)[a] * inside(random);
    out << x[0] << ' ' << x[1] << ' ' << x[2] << ' ';
    if (s.problem().equation == EquationKind::poisson) {
      out << s.value({&x, 1})[0] << '\n';
      continue;
    }
    const Point u = s.velocity({&x, 1})[0];
    out << u[0] << ' ' << u[1] << ' ' << u[2] << ' ' << s.pressure({&x, 1})[0];
    if (others.at) {
      for (const double value : others.at(x)) out << ' ' << value;
    }
    out << '\n';
  }
}

// True if VTK reads the file and finds the solution in it; skips the test without VTK.
void expect_vtk_agrees(const Solution& s, const fs::path& file, const Others& others = {}) {
  const fs::path probes = file.parent_path() / "probes.txt";
  write_probes(s, probes, others);
  std::string command =
      SOLENOID_PYTHON " '" SOLENOID_SOURCE_DIR "/tests/vtu_read.py' '" + file.string() + "' '" + probes.string() + "'";
  for (const std::string& name : others.names) command += " " + name;
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "VTK for Python is not installed";
  EXPECT_EQ(status, 0);
}

// Images -------------------------------------------------------------------------------------------------------------

/// On a lopsided image with some solid voxels: u = (x^2, -2 x y, z), p = x + 2 y + 3 z; x^2 and x y are in the space
/// for k >= 1.
Solution in_image(int dim, int order, int refine) {
  const std::array<int, 3> extent{4, 3, dim == 3 ? 2 : 1};
  const auto solid = [](const std::array<int, 3>& at) { return (at[0] + 2 * at[1] + at[2]) % 5 == 0; };
  Problem p;
  p.mesh = Mesh::of(std::make_shared<const VoxelImage>(dim, extent, solid, std::array{2e-6, 3e-6, 2.5e-6}), refine);
  p.order = order;
  return test::interpolate(
      p,
      {[=](const Point& x) { return order == 0 ? x[0] : x[0] * x[0]; },
       [=](const Point& x) { return order == 0 ? -x[1] : -2.0 * x[0] * x[1]; }, [](const Point& x) { return x[2]; }},
      [](const Point& x) { return x[0] + 2.0 * x[1] + 3.0 * x[2]; });
}

/// What a voxel of it has, in metres: the velocity, the pressure.
std::array<double, 4> exact_means(const Solution& flow, const std::array<int, 3>& at) {
  const VoxelImage& image = *flow.problem().mesh.image;
  if (image.solid(at)) return {0.0, 0.0, 0.0, std::nan("")};
  Point x{};
  for (int a = 0; a < image.dim(); ++a) x[a] = (at[a] + 0.5) * image.voxel()[a] / image.voxel()[0];
  const double area = std::pow(image.voxel()[0], 2);
  const double pressure = image.voxel()[0] * (x[0] + 2.0 * x[1] + 3.0 * x[2]);
  if (flow.problem().order == 0) return {area * x[0], -area * x[1], area * x[2], pressure};
  return {area * (x[0] * x[0] + 1.0 / 12.0), -2.0 * area * x[0] * x[1], area * x[2], pressure};
}

template <class Visit>
void for_voxels(const VoxelImage& image, const Visit& visit) {
  for (int x = 0; x < image.extent()[0]; ++x) {
    for (int y = 0; y < image.extent()[1]; ++y) {
      for (int z = 0; z < image.extent()[2]; ++z) visit(std::array{x, y, z});
    }
  }
}

TEST_F(Output, FieldsOfImagesAreMeansOverVoxels) {
  for (const int dim : {2, 3}) {
    for (const int order : {0, 1, 2}) {
      for (const int refine : {0, 1}) {
        const Solution flow = in_image(dim, order, refine);
        const ImageFields fields = image_fields(flow);
        const VoxelImage& image = *flow.problem().mesh.image;
        ASSERT_EQ(std::ssize(fields.velocity), dim * image.size());
        ASSERT_EQ(std::ssize(fields.pressure), image.size());
        std::size_t voxel = 0;
        for_voxels(image, [&](const std::array<int, 3>& at) {
          const auto exact = exact_means(flow, at);
          for (int c = 0; c < dim; ++c) EXPECT_NEAR(fields.velocity[dim * voxel + c], exact[c], 1e-6 * 16 * 4e-12);
          EXPECT_EQ(std::isnan(fields.pressure[voxel]), image.solid(at));
          if (image.pore(at)) {
            EXPECT_NEAR(fields.pressure[voxel], exact[3], 1e-6 * 20 * 2e-6);
          }
          ++voxel;
        });
      }
    }
  }
  EXPECT_THROW(image_fields(swirl(2, 1)), InputError);
  EXPECT_THROW(image_fields(scalar(2, 1)), InputError);
}

TEST_F(Output, VtkFindsFieldsOfImages) {
  for (const int dim : {2, 3}) {
    const Solution flow = in_image(dim, 1, 0);
    const VoxelImage& image = *flow.problem().mesh.image;
    const fs::path file = folder_ / fmt::format("flow_{}d.vti", dim);
    EXPECT_THROW(write_vti(flow, file, static_cast<double>(image_file_bytes(image)) - 1.0), InputError);
    EXPECT_FALSE(fs::exists(file));
    write_vti(flow, file);
    {
      std::ofstream out(folder_ / "voxels.txt");
      out.precision(17);
      for_voxels(image, [&](const std::array<int, 3>& at) {
        for (int a = 0; a < 3; ++a) out << (a < dim ? (at[a] + 0.5) * image.voxel()[a] : 0.0) << ' ';
        for (const double value : exact_means(flow, at)) out << value << ' ';
        out << image.pore(at) << '\n';
      });
    }
    const std::string command = SOLENOID_PYTHON " '" SOLENOID_SOURCE_DIR "/tests/vti_read.py' '" + file.string() +
                                "' '" + (folder_ / "voxels.txt").string() + "'";
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "VTK for Python is not installed";
    EXPECT_EQ(status, 0);
  }
}

TEST_F(Output, VtkFindsTheSolutionInLagrangeCells2D) {
  for (const int order : {0, 1, 2, 5}) {
    const Solution s = swirl(2, order);
    write_vtu(s, folder_ / "u.vtu");
    expect_vtk_agrees(s, folder_ / "u.vtu");
    if (IsSkipped()) return;
  }
}

TEST_F(Output, VtkFindsTheSolutionInLagrangeCells3D) {
  for (const int order : {0, 1, 2, 3}) {
    const Solution s = swirl(3, order);
    write_vtu(s, folder_ / "u.vtu");
    expect_vtk_agrees(s, folder_ / "u.vtu");
    if (IsSkipped()) return;
  }
}

// A vorticity is in the space of the file; what is quadratic is where the gradient is constant.
TEST_F(Output, VtkFindsTheFieldsOfAFlow) {
  for (const int dim : {2, 3}) {
    for (const auto& [solution, fields] :
         {std::pair{swirl(dim, 2), std::vector{FlowField::vorticity, FlowField::stress, FlowField::viscosity}},
          std::pair{swirl(dim, 2), std::vector{FlowField::mass, FlowField::strain_rate}},
          std::pair{swirl(dim, 1, true), std::vector{FlowField::q, FlowField::vorticity, FlowField::dissipation}}}) {
      write_vtu(solution, folder_ / "u.vtu", 0, fields);
      expect_vtk_agrees(solution, folder_ / "u.vtu", fields_of(solution, fields));
      if (IsSkipped()) return;
    }
  }
  EXPECT_THROW(write_vtu(scalar(2, 1), folder_ / "u.vtu", 0, std::vector{FlowField::q}), InputError);
}

// Tensors are in ParaView's order.
TEST_F(Output, VtkFindsAverages) {
  for (const int dim : {2, 3}) {
    const Averages averages{0.0, 1.0, swirl(dim, 2), std::vector<Solution>(dim * (dim + 1) / 2, scalar(dim, 2)),
                            scalar(dim, 2)};
    Averages different = averages;
    for (int i = 0; i < std::ssize(different.stresses); ++i) {
      Problem p = different.stresses[i].problem();
      const auto values = averages.stresses[i].coefficients();
      HostVector scaled(values.size());
      std::transform(values.begin(), values.end(), scaled.begin(), [i](double value) { return (i + 1.5) * value; });
      different.stresses[i] = Solution(p, std::make_shared<const Grid>(p.mesh, p.boundary), std::move(scaled));
    }
    write_vtu(different, folder_ / "u.vtu");
    const Others others{
        {"reynolds_stress", "dissipation"}, [&](const Point& x) {
          const Gradient r = different.stress({&x, 1})[0];
          return std::vector<double>{
              r[0][0], r[1][1], r[2][2], r[0][1], r[1][2], r[0][2], different.dissipation.value({&x, 1})[0]};
        }};
    expect_vtk_agrees(different.flow, folder_ / "u.vtu", others);
    if (IsSkipped()) return;
  }
}

TEST_F(Output, VtkFindsTheSolutionOfPoissonsEquation) {
  for (const int dim : {2, 3}) {
    const Solution s = scalar(dim, 2);
    write_vtu(s, folder_ / "u.vtu");
    expect_vtk_agrees(s, folder_ / "u.vtu");
    if (IsSkipped()) return;
  }
}

TEST_F(Output, VtkFindsTheSolutionInSubdividedCells) {
  for (const int dim : {2, 3}) {
    const Solution s = swirl(dim, 1, true);  // linear in every subcell, so that nothing is lost
    write_vtu(s, folder_ / "u.vtu", 3);
    expect_vtk_agrees(s, folder_ / "u.vtu");
    if (IsSkipped()) return;
  }
}

// The XML in front of the binary part.
std::string head_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str().substr(0, text.str().find("<AppendedData"));
}

TEST_F(Output, VtuFilesAreWhatOtherReadersTake) {
  for (const int subdivide : {0, 2}) {
    write_vtu(swirl(2, 2), folder_ / "u.vtu", subdivide);
    const std::string head = head_of(folder_ / "u.vtu");
    const std::regex attribute("\\w+=\"([^\"]*)\"");
    int count = 0;
    for (std::sregex_iterator match(head.begin(), head.end(), attribute), end; match != end; ++match, ++count) {
      EXPECT_EQ((*match)[1].str().find(' '), std::string::npos) << match->str();
    }
    EXPECT_GT(count, 20);
    const std::string version = subdivide == 0 ? "version=\"2.2\"" : "version=\"1.0\"";
    EXPECT_NE(head.find("<VTKFile type=\"UnstructuredGrid\" " + version), std::string::npos) << head;
  }
}

// Lines of a file, split at commas.
std::vector<std::vector<std::string>> table_of(const fs::path& file) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    rows.emplace_back();
    for (std::string word; std::getline(words, word, ',');) rows.back().push_back(word);
  }
  return rows;
}

TEST_F(Output, SamplesAreATableWithAllDigits) {
  const auto same = [](const std::string& text, double value) {
    return std::isnan(value) ? text == "nan" : std::stod(text) == value;
  };
  for (const int dim : {2, 3}) {
    const Solution s = swirl(dim, 2);
    std::vector<Point> points;
    for (int i = 0; i <= 20'000; ++i) points.push_back({1.5 * i / 20'000, 0.3, dim == 3 ? 0.3 : 0.0});
    write_csv(s, points, folder_ / "line.csv");
    const auto rows = table_of(folder_ / "line.csv");
    ASSERT_EQ(rows.size(), points.size() + 1);
    EXPECT_EQ(rows[0], dim == 2 ? (std::vector<std::string>{"x", "y", "u_x", "u_y", "p"})
                                : (std::vector<std::string>{"x", "y", "z", "u_x", "u_y", "u_z", "p"}));
    const auto u = s.velocity(points);
    const auto p = s.pressure(points);
    int outside = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto& row = rows[i + 1];
      ASSERT_EQ(row.size(), rows[0].size());
      outside += row.back() == "nan" ? 1 : 0;
      for (int a = 0; a < dim; ++a) {
        EXPECT_EQ(std::stod(row[a]), points[i][a]);
        EXPECT_TRUE(same(row[dim + a], u[i][a])) << row[dim + a];
      }
      EXPECT_TRUE(same(row.back(), p[i])) << row.back();
    }
    EXPECT_NEAR(outside, 20'000 / 3, 2);
  }
  const Solution s = scalar(2, 1);
  const std::vector<Point> points{{0.1, 0.2, 0.0}};
  write_csv(s, points, folder_ / "point.csv");
  const auto rows = table_of(folder_ / "point.csv");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"x", "y", "u"}));
  EXPECT_EQ(std::stod(rows[1][2]), s.value(points)[0]);
}

TEST_F(Output, ManyBlocksAreOneArray) {
  Problem p;
  p.mesh = Mesh::unit(2, 7);  // velocity: 16384 cells of 16 points, 24 blocks
  p.order = 2;
  const Solution s = test::interpolate(p, {[](const Point& x) { return x[1]; }, [](const Point& x) { return x[0]; }},
                                       [](const Point& x) { return x[0] * x[1]; });
  write_vtu(s, folder_ / "u.vtu");
  expect_vtk_agrees(s, folder_ / "u.vtu");
}

TEST_F(Output, AFailedFileLeavesNothingBehind) {
  EXPECT_THROW(write_vtu(swirl(2, 1), folder_ / "missing" / "u.vtu"), Error);
  EXPECT_THROW(write_vtu(swirl(2, 1), folder_ / "u.vtu", -1), InputError);
  EXPECT_THROW(write_picture(swirl(2, 1), folder_ / "missing" / "u.png"), Error);
  std::ofstream(folder_ / "kept.txt") << "old";
  try {
    NewFile file(folder_ / "kept.txt");
    file.stream() << "new, half";
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
  }
  std::string text;
  std::ifstream(folder_ / "kept.txt") >> text;
  EXPECT_EQ(text, "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Output, AFullDiskIsAnErrorThatNamesTheFile) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  fs::create_symlink("/dev/full", folder_ / "u.vtu.partial");
  try {
    write_vtu(swirl(2, 1), folder_ / "u.vtu");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("u.vtu"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Output, LinksAreFollowedAndPipesWrittenTo) {
  const auto write = [&](const char* name, const std::string& text) {
    NewFile file(folder_ / name);
    file.stream() << text;
    file.commit();
  };
  const auto read = [&](const char* name) {
    std::string text;
    std::ifstream(folder_ / name) >> text;
    return text;
  };
  fs::create_directory(folder_ / "elsewhere");
  fs::create_symlink("elsewhere/file", folder_ / "second");
  fs::create_symlink("second", folder_ / "first");
  for (const char* text : {"new", "newer"}) {  // the first makes the file
    write("first", text);
    EXPECT_TRUE(fs::is_symlink(folder_ / "first") && fs::is_symlink(folder_ / "second"));
    EXPECT_EQ(read("elsewhere/file"), text);
  }

  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder_ / "link");
  for (const char* name : {"pipe", "link"}) {
    auto received = std::async(std::launch::async, [&] { return read("pipe"); });
    write(name, "through");
    EXPECT_EQ(received.get(), "through");
    EXPECT_TRUE(fs::is_fifo(folder_ / "pipe") && fs::is_symlink(folder_ / "link"));
  }
}

struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;

  explicit Image(const fs::path& file) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    EXPECT_NE(png_image_begin_read_from_file(&image, file.c_str()), 0);
    image.format = PNG_FORMAT_RGB;
    width = static_cast<int>(image.width);
    height = static_cast<int>(image.height);
    rgb.resize(PNG_IMAGE_SIZE(image));
    EXPECT_NE(png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr), 0);
  }
  [[nodiscard]] std::array<int, 3> at(int i, int j) const {
    const std::uint8_t* p = &rgb[3 * (i + static_cast<std::size_t>(width) * j)];
    return {p[0], p[1], p[2]};
  }
};

// The centre of the first place, from the top, where a picture has a text and nothing around it.
std::optional<Spot> find_text(const Image& image, const std::string& text, double height) {
  constexpr int border = 4;  // of nothing
  constexpr int descent = 8;
  constexpr Colour ink{0.13F, 0.14F, 0.16F};
  const int width = static_cast<int>(text_width(text, height)) + 2 * border;
  const int rows = static_cast<int>(height) + border + descent;
  Canvas pattern(width, rows, {1, 1, 1});
  Coverage letters = pattern.coverage();
  letters.text(text, {1.0 * border, height + border}, height, 1.8);
  pattern.paint(letters, ink);
  const auto matches = [&](int left, int top) {
    for (int j = 0; j < rows; ++j) {
      for (int i = 0; i < width; ++i) {
        for (int c = 0; c < 3; ++c) {
          if (std::abs(image.at(left + i, top + j)[c] - 255.0F * pattern.pixel(i, j)[c]) > 1) return false;
        }
      }
    }
    return true;
  };
  for (int top = 0; top + rows <= image.height; ++top) {
    for (int left = 0; left + width <= image.width; ++left) {
      if (matches(left, top)) return Spot{left + 0.5 * width, top + border + 0.5 * height};
    }
  }
  return std::nullopt;
}
constexpr double title_height = 18;
constexpr double label_height = 16;

TEST_F(Output, PicturesHaveAxesWithCoordinates) {
  write_picture(swirl(2, 2), folder_ / "u.png");
  const Image image(folder_ / "u.png");
  for (const char* label : {"x", "y", "0", "0.2", "0.5", "0.8", "1", "1.5"}) {
    EXPECT_TRUE(find_text(image, label, label_height)) << label;
  }
  EXPECT_FALSE(find_text(image, "0.7", label_height));
  // The domain is 1.5 wide, 1060 pixels of the picture.
  const auto left = find_text(image, "0.5", label_height);
  const auto right = find_text(image, "1.5", label_height);
  ASSERT_TRUE(left && right);
  EXPECT_NEAR((*right)[0] - (*left)[0], 1060 / 1.5, 2);
  EXPECT_EQ((*right)[1], (*left)[1]);
  const auto low = find_text(image, "0.2", label_height);
  const auto high = find_text(image, "0.8", label_height);
  ASSERT_TRUE(low && high);
  EXPECT_NEAR((*low)[1] - (*high)[1], 0.6 * 1060 / 1.5, 2);
  EXPECT_TRUE(find_text(image, "speed |u|", title_height));
}

// Of rotations, which have one vorticity everywhere: the ends of the colours.
TEST_F(Output, PicturesShowFieldsWithTheirSign) {
  for (const int dim : {2, 3}) {
    for (const double turn : {-1.0, 1.0}) {
      const Solution s = [&] {
        Problem p = swirl(dim, 1).problem();
        p.mesh.holes.clear();
        return test::interpolate(p,
                                 {[=](const Point& x) { return -turn * x[1]; },
                                  [=](const Point& x) { return turn * x[0]; }, [](const Point&) { return 0.0; }},
                                 [](const Point&) { return 0.0; });
      }();
      write_picture(s, folder_ / "u.png", FlowField::vorticity);
      const Image image(folder_ / "u.png");
      EXPECT_TRUE(turn > 0.0 || find_text(image, dim == 3 ? "vorticity, z component" : "vorticity", 18) ||
                  find_text(image, "vorticity, z component, slice z = 0.5", 18));
      const auto [red, green, blue] = image.at(image.width / 2, image.height / 2);
      EXPECT_EQ(red > 100, turn > 0.0);
      EXPECT_EQ(blue > 100, turn < 0.0);
    }
  }
  // A scale of its own: a speed of 1 in the middle of it, or near its lower end.
  const auto one = [](const Point&) { return 1.0; };
  Problem p;
  p.mesh = Mesh::unit(2, 2);
  p.order = 1;
  const Solution even = test::interpolate(p, {one, [](const Point&) { return 0.0; }}, one);
  std::array<int, 2> green{};
  for (int i = 0; i < 2; ++i) {
    write_picture(even, folder_ / "u.png", {}, Scale{0.5, i == 0 ? 1.5 : 33.0});
    const Image image(folder_ / "u.png");
    EXPECT_TRUE(find_text(image, i == 0 ? "1.5" : "33", 16));
    std::vector<int> column;
    for (int j = 200; j < 800; ++j) column.push_back(image.at(image.width / 2, j)[1]);
    std::nth_element(column.begin(), column.begin() + 300, column.end());
    green[i] = column[300];
  }
  EXPECT_GT(green[0], green[1] + 60);  // from violet to green
  EXPECT_THROW(write_picture(even, folder_ / "u.png", {}, Scale{1.0, 1.0}), InputError);
  for (const FlowField field : {FlowField::q, FlowField::dissipation}) {
    write_picture(swirl(2, 2), folder_ / "u.png", field);
    EXPECT_TRUE(find_text(Image(folder_ / "u.png"), field == FlowField::q ? "Q" : "dissipation", 18));
  }
  write_picture(swirl(2, 2), folder_ / "u.png", FlowField::strain_rate_invariant);
  EXPECT_TRUE(find_text(Image(folder_ / "u.png"), "strain rate invariant", 18));
  write_picture(swirl(2, 2), folder_ / "u.png", FlowField::viscosity);
  EXPECT_TRUE(find_text(Image(folder_ / "u.png"), "viscosity, log10", 18));
  EXPECT_THROW(write_picture(swirl(2, 2), folder_ / "u.png", FlowField::stress), InputError);
  EXPECT_THROW(write_picture(scalar(2, 1), folder_ / "u.png", FlowField::q), InputError);
}

TEST_F(Output, PicturesSayWhichStreamlinesTheyShow) {
  write_picture(swirl(3, 2), folder_ / "u.png");
  EXPECT_TRUE(
      find_text(Image(folder_ / "u.png"), "speed |u|, slice z = 0.625, streamlines: in-plane velocity", title_height));
  // What a solver leaves of a velocity that is zero is no flow.
  Problem p;
  p.mesh = Mesh::unit(3, 1);
  p.order = 1;
  write_picture(test::interpolate(p,
                                  {[](const Point& x) { return 1e-9 * x[1]; }, [](const Point&) { return 0.0; },
                                   [](const Point& x) { return x[0]; }},
                                  [](const Point&) { return 0.0; }),
                folder_ / "u.png");
  EXPECT_TRUE(find_text(Image(folder_ / "u.png"), "speed |u|, slice z = 0.5, no in-plane velocity", title_height));
}

TEST_F(Output, ColourBarsHaveLabelsAtTheirEnds) {
  Problem p;
  p.mesh = Mesh::unit(2, 1);
  p.order = 1;
  const auto zero = [](const Point&) { return 0.0; };
  for (const auto& [scale, end] : {std::pair{3.7, "3.7"}, std::pair{3.7e-60, "3.7e-60"}, std::pair{3.7e99, "3.7e99"}}) {
    write_picture(test::interpolate(p, {[scale = scale](const Point& x) { return scale * x[1]; }, zero}, zero),
                  folder_ / "u.png");
    const Image image(folder_ / "u.png");
    EXPECT_TRUE(find_text(image, end, label_height)) << end;
    const auto colour = image.at(600, 200);
    EXPECT_GT(colour[0] + colour[1], 200) << "fast at the top, whatever the unit";
  }
}

TEST_F(Output, PicturesShowDomainsOfAnyShape) {
  for (const int dim : {2, 3}) {
    write_picture(swirl(dim, 2), folder_ / "u.png");
    const Image image(folder_ / "u.png");
    EXPECT_NEAR(image.width, 1170, 30);
    EXPECT_EQ(image.at(2, 2), (std::array<int, 3>{255, 255, 255}));
  }
  Problem p;
  p.mesh.dim = 2;
  p.order = 1;
  for (const std::array<int, 3>& cells : {std::array<int, 3>{60, 1, 1}, std::array<int, 3>{1, 60, 1}}) {
    p.mesh.cells = cells;
    p.mesh.upper = {1.0 * cells[0], 1.0 * cells[1], 1.0};
    const auto one = [](const Point&) { return 1.0; };
    write_picture(test::interpolate(p, {one, one}, one), folder_ / "u.png");
    const Image image(folder_ / "u.png");
    EXPECT_LE(image.width, 1200);
    EXPECT_GE(image.width, 480);
    EXPECT_LE(image.height, 1500);
  }
}

TEST_F(Output, AFluidAtRestHasAPicture) {
  const auto zero = [](const Point&) { return 0.0; };
  Problem p;
  p.mesh = Mesh::unit(2, 1);
  write_picture(test::interpolate(p, {zero, zero}, zero), folder_ / "u.png");
  const Image image(folder_ / "u.png");
  EXPECT_EQ(image.at(600, 600), (std::array<int, 3>{68, 1, 84}));  // the lowest colour
}

TEST(Streamlines, OfARotationAreCirclesApart) {
  VectorRaster field{200, 200, {}};
  for (int j = 0; j < 200; ++j) {
    for (int i = 0; i < 200; ++i) field.values.push_back({j + 0.5F - 100, 100 - (i + 0.5F)});
  }
  const double separation = 20;
  const auto lines = streamlines(field, separation);
  ASSERT_GT(lines.size(), 3U);
  std::vector<double> radii;
  for (const Polyline& line : lines) {
    double smallest = 1e9;
    double largest = 0;
    for (const Spot& x : line) {
      const double r = std::hypot(x[0] - 100, x[1] - 100);
      smallest = std::min(smallest, r);
      largest = std::max(largest, r);
    }
    EXPECT_LT(largest - smallest, 0.1);
    if (largest < 95) {  // closed inside the raster
      EXPECT_LT(std::hypot(line.front()[0] - line.back()[0], line.front()[1] - line.back()[1]), 1.5);
      for (const double other : radii) EXPECT_GT(std::abs(other - largest), 0.45 * separation);
      radii.push_back(largest);
    }
  }
  EXPECT_GT(radii.size(), 2U);
}

TEST(Coverage, HasAllLettersOfThePictures) {
  for (const char letter :
       std::string("speed|u|,slicez=0123456789.e+-streamlines:in-planevelocity,noaxesnottoscalexy")) {
    Coverage coverage(30, 30);
    coverage.text(std::string(1, letter), {10, 20}, 16, 2);
    const auto& drawn = coverage.values();
    EXPECT_GT(std::accumulate(drawn.begin(), drawn.end(), 0.0F), 1.0F) << letter;
  }
}

TEST(Ticks, AreRoundNumbers) {
  EXPECT_DOUBLE_EQ(nice_step(1, 6), 0.2);
  EXPECT_DOUBLE_EQ(nice_step(1, 5), 0.2);
  EXPECT_DOUBLE_EQ(nice_step(1e-60, 10), 1e-61);
  EXPECT_DOUBLE_EQ(nice_step(7e8, 1), 1e9);
  const auto list = multiples(0.1, -0.3, 0.2);
  ASSERT_EQ(list.size(), 6U);
  EXPECT_DOUBLE_EQ(list[0], -0.3);
  EXPECT_FALSE(std::signbit(list[3]));
  EXPECT_EQ(list[3], 0.0);
  EXPECT_LE(multiples(1e-9, 1e16, 1e17).size(), 100U);  // and ends
}

TEST(Ticks, HaveLabelsThatDiffer) {
  EXPECT_EQ(number_label(0.25, 0.05, 1), "0.25");
  EXPECT_EQ(number_label(-0.0, 0.1, 1), "0");
  EXPECT_EQ(number_label(-1e-9, 0.1, 1), "0");
  EXPECT_EQ(number_label(40, 20, 100), "40");
  EXPECT_EQ(number_label(100, 100, 500), "100");
  EXPECT_EQ(number_label(1.5e-4, 5e-5, 3.5e-4), "1.5e-4");
  EXPECT_EQ(number_label(0, 5e-5, 3.5e-4), "0");
  EXPECT_EQ(number_label(-2e100, 1e100, 4e100), "-2e100");
  EXPECT_EQ(number_label(1000.002, 0.001, 1000.004), "1000.002");
  EXPECT_EQ(number_label(1000000.2, 0.2, 1000001), "1.0000002e6");
}

TEST(Coverage, OverlapsCountOnce) {
  Canvas canvas(20, 20, {0, 0, 0});
  Coverage coverage = canvas.coverage();
  coverage.stroke({{2, 10}, {18, 10}, {2, 10}}, 4);
  canvas.paint(coverage, {1, 1, 1}, 0.5F);
  EXPECT_FLOAT_EQ(canvas.pixel(10, 10)[0], 0.5F);
  EXPECT_FLOAT_EQ(canvas.pixel(10, 2)[0], 0.0F);
}

}  // namespace
}  // namespace solenoid
