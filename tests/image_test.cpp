// Voxel images: files, images made of numbers, which pores are connected, and meshes of them.

#include "solenoid/image.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "image/connectivity.hpp"
#include "image/generate.hpp"
#include "mesh/grid.hpp"
#include "problem/parts.hpp"
#include "program.hpp"
#include "solenoid/case.hpp"
#include "solenoid/error.hpp"
#include "solenoid/problem.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

namespace fs = std::filesystem;
using Places = std::array<int, 3>;
using Directions = std::array<bool, 3>;

VoxelImage random_image(int dim, const Places& extent, double solid, std::mt19937& random) {
  std::vector<bool> bits(std::int64_t{extent[0]} * extent[1] * extent[2]);
  std::uniform_real_distribution<double> share(0.0, 1.0);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = share(random) < solid;
  return {dim, extent, [&](const Places& at) { return bits[at[0] + extent[0] * (at[1] + extent[1] * at[2])]; }};
}

template <class Visit>
void for_voxels(const Places& extent, const Visit& visit) {
  for (int z = 0; z < extent[2]; ++z) {
    for (int y = 0; y < extent[1]; ++y) {
      for (int x = 0; x < extent[0]; ++x) visit(Places{x, y, z});
    }
  }
}

/// Small images of any shape, rows of more than a word among them.
VoxelImage any_image(std::mt19937& random) {
  const int dim = 2 + static_cast<int>(random() % 2);
  Places extent{1, 1, 1};
  for (int a = 0; a < dim; ++a) extent[a] = 1 + static_cast<int>(random() % (dim == 2 ? 40 : 9));
  if (random() % 8 == 0) extent[0] += 64;
  return random_image(dim, extent, 0.1 + 0.1 * static_cast<double>(random() % 8), random);
}

Directions any_directions(std::mt19937& random, int dim) {
  return {random() % 2 == 0, random() % 2 == 0, dim == 3 && random() % 2 == 0};
}

// The image -----------------------------------------------------------------------------------------------------------

TEST(Image, KnowsItsVoxels) {
  const VoxelImage image(3, {70, 3, 2}, [](const Places& at) { return at[0] == 65 && at[1] == 1; }, {2e-6, 1e-6, 3e-6});
  EXPECT_EQ(image.size(), 420);
  EXPECT_EQ(image.solids(), 2);
  EXPECT_EQ(image.pores(), 418);
  EXPECT_DOUBLE_EQ(image.porosity(), 418.0 / 420.0);
  for_voxels(image.extent(), [&](const Places& at) { EXPECT_EQ(image.solid(at), at[0] == 65 && at[1] == 1); });
  // Bits after the end of a row are not voxels.
  EXPECT_EQ(VoxelImage(2, {3, 1, 1}, {~std::uint64_t{0}}).solids(), 3);
}

TEST(Image, Refuses) {
  const auto pore = [](const Places&) { return false; };
  EXPECT_THROW(VoxelImage(1, {3, 1, 1}, pore), InputError);
  EXPECT_THROW(VoxelImage(2, {3, 0, 1}, pore), InputError);
  EXPECT_THROW(VoxelImage(2, {3, 3, 2}, pore), InputError);
  EXPECT_THROW(VoxelImage(3, {1 << 30, 1 << 30, 1 << 30}, pore), InputError);
  EXPECT_THROW(VoxelImage(2, {3, 1, 1}, pore, {1, 0, 1}), InputError);
  EXPECT_THROW(VoxelImage(2, {3, 1, 1}, std::vector<std::uint64_t>(2)), InputError);
  const VoxelImage image(2, {3, 4, 1}, pore);
  EXPECT_THROW((void)image.crop({0, 0, 0}, {4, 4, 1}), InputError);
  EXPECT_THROW((void)image.crop({1, 0, 0}, {1, 4, 1}), InputError);
}

TEST(Image, IsCroppedAndMirrored) {
  std::mt19937 random(1);
  const VoxelImage image = random_image(3, {7, 5, 6}, 0.4, random);
  const VoxelImage part = image.crop({1, 2, 0}, {7, 4, 5});
  EXPECT_EQ(part.extent(), (Places{6, 2, 5}));
  for_voxels(part.extent(), [&](const Places& at) {
    EXPECT_EQ(part.solid(at), image.solid({at[0] + 1, at[1] + 2, at[2]}));
  });
  const VoxelImage twice = image.mirror({true, false, true});
  EXPECT_EQ(twice.extent(), (Places{14, 5, 12}));
  EXPECT_EQ(twice.porosity(), image.porosity());
  EXPECT_EQ(twice.crop({0, 0, 0}, {7, 5, 6}), image);
  for_voxels(twice.extent(), [&](const Places& at) {
    EXPECT_EQ(twice.solid(at), twice.solid({13 - at[0], at[1], at[2]}));
    EXPECT_EQ(twice.solid(at), twice.solid({at[0], at[1], 11 - at[2]}));
  });
}

// Connectivity --------------------------------------------------------------------------------------------------------

/// Components by a flood that remembers in which copy of the image it reached a voxel.
struct Flood {
  std::vector<int> component;  // [voxel], -1 in solid
  std::vector<PoreComponent> all;

  Flood(const VoxelImage& image, const Directions& periodic) {
    const Places extent = image.extent();
    const auto index = [&](const Places& at) { return at[0] + extent[0] * (at[1] + extent[1] * at[2]); };
    component.assign(image.size(), -1);
    std::vector<Places> copy(image.size());
    for_voxels(extent, [&](const Places& seed) {
      if (image.solid(seed) || component[index(seed)] >= 0) return;
      const auto number = static_cast<int>(all.size());
      PoreComponent& found = all.emplace_back();
      std::vector<Places> front{seed};
      component[index(seed)] = number;
      std::array<std::array<bool, 2>, 3> ends{};
      while (!front.empty()) {
        const Places at = front.back();
        front.pop_back();
        ++found.voxels;
        for (int a = 0; a < image.dim(); ++a) {
          ends[a][0] = ends[a][0] || at[a] == 0;
          ends[a][1] = ends[a][1] || at[a] == extent[a] - 1;
          for (const int step : {-1, 1}) {
            Places next = at;
            Places in = copy[index(at)];
            next[a] += step;
            if (next[a] < 0 || next[a] >= extent[a]) {
              if (!periodic[a]) continue;
              in[a] += step;
              next[a] = step < 0 ? extent[a] - 1 : 0;
            }
            if (image.solid(next)) continue;
            if (component[index(next)] < 0) {
              component[index(next)] = number;
              copy[index(next)] = in;
              front.push_back(next);
              continue;
            }
            for (int b = 0; b < image.dim(); ++b) {
              if (periodic[b] && copy[index(next)][b] != in[b]) found.percolates[b] = true;
            }
          }
        }
      }
      for (int a = 0; a < image.dim(); ++a) {
        if (!periodic[a]) found.percolates[a] = ends[a][0] && ends[a][1];
      }
    });
  }
};

TEST(Connectivity, IsThatOfAFlood) {
  std::mt19937 random(2);
  int percolating = 0;
  int closed = 0;
  for (int i = 0; i < 3000; ++i) {
    const VoxelImage image = any_image(random);
    const Directions periodic = any_directions(random, image.dim());
    const Flood flood(image, periodic);
    const Connectivity found(image, periodic);
    ASSERT_TRUE(std::ranges::equal(found.of_voxels(), flood.component)) << i;
    ASSERT_EQ(found.components().size(), flood.all.size());
    std::int64_t flowing = 0;
    const Directions wanted = any_directions(random, image.dim());
    for (std::size_t c = 0; c < flood.all.size(); ++c) {
      EXPECT_EQ(found.components()[c].voxels, flood.all[c].voxels);
      ASSERT_EQ(found.components()[c].percolates, flood.all[c].percolates) << i;
      bool flows = false;
      for (int a = 0; a < 3; ++a) flows = flows || (wanted[a] && flood.all[c].percolates[a]);
      ++(flows ? percolating : closed);
      flowing += flows ? flood.all[c].voxels : 0;
    }
    EXPECT_EQ(found.flowing(wanted), flowing);
    const VoxelImage kept = keep_flowing(image, wanted, periodic);
    EXPECT_EQ(kept.pores(), flowing);
    for_voxels(image.extent(), [&](const Places& at) { EXPECT_TRUE(kept.solid(at) || image.pore(at)); });
    EXPECT_EQ(keep_flowing(kept, wanted, periodic), kept);
  }
  EXPECT_GT(percolating, 300);
  EXPECT_GT(closed, 300);
}

/// A way that goes around twice in x before it closes, and one that goes around in x and y at once.
TEST(Connectivity, FindsWaysThatWind) {
  const auto of = [](const std::vector<std::string>& rows) {
    const auto width = static_cast<int>(rows[0].size());
    return VoxelImage(2, {width, static_cast<int>(rows.size()), 1},
                      [&](const Places& at) { return rows[at[1]][at[0]] == '#'; });
  };
  const Directions both{true, true, false};
  const VoxelImage diagonal = of({"..##", "#..#", "##..", ".##."});
  EXPECT_EQ(Connectivity(diagonal, both).components().size(), 1U);
  EXPECT_EQ(Connectivity(diagonal, both).percolates(), both);
  EXPECT_EQ(Connectivity(diagonal, {true, false, false}).percolates(), (Directions{false, true, false}));
  const VoxelImage closed = of({"####", "#..#", "####"});
  EXPECT_EQ(Connectivity(closed, both).percolates(), Directions{});
  EXPECT_EQ(keep_flowing(closed, both, both).pores(), 0);
}

TEST(Connectivity, CountsThroats) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const VoxelImage image = any_image(random);
    const Directions periodic = any_directions(random, image.dim());
    const Places extent = image.extent();
    std::int64_t expected = 0;
    for_voxels(extent, [&](const Places& at) {
      if (image.solid(at)) return;
      bool throat = false;
      for (int a = 0; a < image.dim(); ++a) {
        int run = 1;
        for (const int step : {-1, 1}) {
          Places next = at;
          for (int n = 0; n < 3; ++n) {
            next[a] += step;
            if (periodic[a]) next[a] = (next[a] + extent[a]) % extent[a];
            if (next[a] < 0 || next[a] >= extent[a] || image.solid(next)) break;
            ++run;
          }
        }
        throat = throat || run <= 2;
      }
      expected += throat ? 1 : 0;
    });
    ASSERT_EQ(throat_voxels(image, periodic), expected) << i;
  }
}

// Files ---------------------------------------------------------------------------------------------------------------

class ImageFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("solenoid_image_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  template <class Number>
  fs::path write(const std::string& name, const std::string& header, const std::vector<Number>& numbers) const {
    const fs::path file = folder_ / name;
    std::ofstream stream(file, std::ios::binary);
    stream << header;
    stream.write(reinterpret_cast<const char*>(numbers.data()),
                 static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
    return file;
  }

  static std::string npy(const std::string& descr, bool fortran, const std::string& shape, int version = 1) {
    std::string text =
        "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
    const std::size_t length = version == 1 ? 2 : 4;
    while ((8 + length + text.size() + 1) % 64 != 0) text += ' ';
    text += '\n';
    std::string header = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
    for (std::size_t i = 0; i < length; ++i) header += static_cast<char>(text.size() >> (8 * i) & 255);
    return header + text;
  }

  static std::string message(const fs::path& file, const ImageFormat& format) {
    try {
      (void)read_image(file, format);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  /// Numbers of an array with these directions, the fastest first: 0 in pores, 255 in solid.
  template <class Number>
  static std::vector<Number> numbers(const VoxelImage& image, const std::vector<int>& directions) {
    Places counts{1, 1, 1};
    for (std::size_t i = 0; i < directions.size(); ++i) counts[i] = image.extent()[directions[i]];
    std::vector<Number> result;
    for_voxels(counts, [&](const Places& at) {
      Places voxel{};
      for (std::size_t i = 0; i < directions.size(); ++i) voxel[directions[i]] = at[i];
      result.push_back(static_cast<Number>(image.solid(voxel) ? 100 : 0));
    });
    return result;
  }

  template <class Number>
  void expect_read(const VoxelImage& image, const std::string& dtype, const std::string& descr) {
    const auto& [nx, ny, nz] = image.extent();
    ImageFormat format{.shape = {nx, ny, nz}, .dtype = dtype, .pore = {0}};
    EXPECT_EQ(read_image(write("a.raw", "", numbers<Number>(image, {0, 1, 2})), format), image) << dtype;
    ImageFormat of_array{.pore = {0}};
    const std::string zyx = "(" + std::to_string(nz) + ", " + std::to_string(ny) + ", " + std::to_string(nx) + ")";
    for (const int version : {1, 2, 3}) {
      const std::string header = npy(descr, false, zyx, version);
      EXPECT_EQ(read_image(write("a.npy", header, numbers<Number>(image, {0, 1, 2})), of_array), image) << dtype;
    }
    EXPECT_EQ(read_image(write("a.npy", npy(descr, true, zyx), numbers<Number>(image, {2, 1, 0})), of_array), image);
  }

  fs::path folder_;
};

TEST_F(ImageFile, OfAnyType) {
  std::mt19937 random(4);
  const VoxelImage image = random_image(3, {70, 5, 6}, 0.5, random);
  expect_read<std::int8_t>(image, "int8", "|i1");
  expect_read<std::uint8_t>(image, "uint8", "|u1");
  expect_read<std::int16_t>(image, "int16", "<i2");
  expect_read<std::uint16_t>(image, "uint16", "<u2");
  expect_read<std::int32_t>(image, "int32", "<i4");
  expect_read<std::uint32_t>(image, "uint32", "<u4");
  expect_read<std::int64_t>(image, "int64", "<i8");
  expect_read<std::uint64_t>(image, "uint64", "<u8");
  expect_read<float>(image, "float32", "<f4");
  expect_read<double>(image, "float64", "<f8");
}

TEST_F(ImageFile, WithAnyOrderOfAxes) {
  std::mt19937 random(5);
  const VoxelImage image = random_image(3, {5, 6, 7}, 0.5, random);
  std::vector<int> order{0, 1, 2};
  do {
    std::string axes;
    std::string shape;
    for (const int a : order) {
      axes += "xyz"[a];
      shape += std::to_string(image.extent()[a]) + ",";
    }
    // Raw: from the fastest on.
    const ImageFormat raw{.shape = {5, 6, 7}, .axes = axes, .pore = {0}};
    EXPECT_EQ(read_image(write("a.raw", "", numbers<std::uint8_t>(image, order)), raw), image) << axes;
    // Arrays: of the indices. In the order of Fortran the first is the fastest.
    const ImageFormat array{.axes = axes, .pore = {0}};
    const std::vector<int> reversed(order.rbegin(), order.rend());
    const std::string indices = "(" + shape + ")";
    EXPECT_EQ(read_image(write("a.npy", npy("|b1", true, indices), numbers<std::uint8_t>(image, order)), array), image);
    EXPECT_EQ(read_image(write("a.npy", npy("|b1", false, indices), numbers<std::uint8_t>(image, reversed)), array),
              image);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ImageFile, In2D) {
  std::mt19937 random(6);
  const VoxelImage image = random_image(2, {5, 9, 1}, 0.5, random);
  const auto values = numbers<std::uint8_t>(image, {0, 1});
  const ImageFormat raw{.shape = {5, 9}, .pore = {0}};
  EXPECT_EQ(read_image(write("a.raw", "", values), raw), image);
  EXPECT_EQ(read_image(write("a.npy", npy("|u1", false, "(9, 5)"), values), {.pore = {0}}), image);
}

TEST_F(ImageFile, WithThresholds) {
  const fs::path file = write<float>("a.raw", "", {0.5F, 1.0F, 1.5F, 2.0F, 2.5F, 3.0F});
  const auto pores = [&](ImageFormat format) {
    format.shape = {6, 1};
    format.dtype = "float32";
    const VoxelImage image = read_image(file, format);
    std::string result;
    for (int x = 0; x < 6; ++x) result += image.pore({x, 0, 0}) ? '.' : '#';
    return result;
  };
  EXPECT_EQ(pores({.below = 1.5}), "..####");
  EXPECT_EQ(pores({.above = 1.5}), "###...");
  EXPECT_EQ(pores({.above = 0.5, .below = 2.5}), "#...##");
  EXPECT_EQ(pores({.pore = {2.5, 1.0}}), "#.##.#");
}

TEST_F(ImageFile, CroppedThenMirrored) {
  std::mt19937 random(7);
  const VoxelImage image = random_image(3, {5, 6, 7}, 0.5, random);
  const fs::path file = write("a.raw", "", numbers<std::uint8_t>(image, {0, 1, 2}));
  const ImageFormat format{
      .shape = {5, 6, 7}, .pore = {0}, .lower = {1, 0, 2}, .upper = Places{4, 6, 5}, .mirror = {false, true, false}};
  EXPECT_EQ(read_image(file, format), image.crop({1, 0, 2}, {4, 6, 5}).mirror({false, true, false}));
}

TEST_F(ImageFile, ErrorsSayWhatIsWrong) {
  const auto expect = [&](const fs::path& file, const ImageFormat& format, const std::string& part) {
    const std::string said = message(file, format);
    EXPECT_NE(said.find(part), std::string::npos) << "got: " << said << "\nexpected: " << part;
  };
  const fs::path raw = write<std::uint8_t>("a.raw", "", {0, 1, 2, 3, 3, 7});
  expect(folder_ / "none.raw", {}, "there is no such file");
  expect(folder_, {}, "no regular file");
  expect(raw, {.shape = {3, 2}}, "`pore` or `threshold`");
  expect(raw, {.shape = {3, 2}, .pore = {0}, .below = 1.0}, "either `pore` or `threshold`");
  expect(raw, {.shape = {3, 3}, .pore = {0}}, "it has 6 bytes, but 3 x 3 numbers of type uint8 are 9");
  expect(raw, {.shape = {3, 2}, .dtype = "int16", .pore = {0}}, "type int16 are 12");
  expect(raw, {.shape = {2'000'000'000, 2'000'000'000, 2'000'000'000}, .dtype = "int64", .pore = {0}}, "6 bytes");
  expect(raw, {.shape = {3, 2}, .dtype = "byte", .pore = {0}}, "expected int8, uint8");
  expect(raw, {.pore = {0}}, "needs `shape`");
  expect(raw, {.shape = {6}, .pore = {0}}, "`shape` has 1 entries");
  expect(raw, {.shape = {3, 2}, .axes = "xz", .pore = {0}}, "`axes` is \"xz\": expected x, y");
  expect(raw, {.shape = {3, 2}, .pore = {0}, .dataset = "a"}, "`dataset` is for HDF5");
  expect(raw, {.shape = {3, 2}, .pore = {0, 5}}, "no voxel has the pore value 5: the values are 0, 1, 2, 3, 7");
  expect(raw, {.shape = {3, 2}, .below = -1.0}, "no voxel is a pore: the values are 0, 1, 2, 3, 7");
  expect(raw, {.shape = {3, 2}, .pore = {0}, .upper = Places{4, 1, 1}}, "from 0 to before 4 in x");
  std::vector<std::int16_t> many(100);
  for (int i = 0; i < 100; ++i) many[i] = static_cast<std::int16_t>(99 - i);
  expect(write("b.raw", "", many), {.shape = {10, 10}, .dtype = "int16", .pore = {-1}},
         "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and larger ones");
  expect(write<float>("c.raw", "", {0.0F, NAN}), {.shape = {2, 1}, .dtype = "float32", .pore = {0}}, "NaN");

  const std::vector<std::uint8_t> six(6);
  const auto expect_npy = [&](const std::string& header, const std::string& part) {
    expect(write("a.npy", header, six), {.pore = {0}}, part);
  };
  expect_npy("", "no .npy file");
  expect_npy("\x93NUMPY", "of version 0");
  expect_npy(npy("|u1", false, "(3, 3)"), "after its header, but 3 x 3 numbers");
  expect_npy(npy("|u1", false, "(6,)"), "has 1 entries");
  expect_npy(npy("|u1", false, "()"), "but");
  expect_npy(npy("|O", false, "(3, 2)"), "'|O': expected bool, integers");
  expect_npy(npy(">i2", false, "(3, 1)"), "little endian");
  expect_npy(npy("|u1", false, "(3, -2)"), "no list of sizes");
  expect_npy(npy("|u1", false, "(99999999999999999999, 2)"), "no list of sizes");
  expect_npy(npy("|u1", false, "(9999999999, 9999999999, 9999999999)"), "6 bytes after its header");
  expect_npy(npy("|u1', 'other': '|u1", false, "(3, 2)"), "another key");
  expect(write("a.npy", npy("|u1", false, "(3, 2)"), six), {.shape = {3, 2}, .pore = {0}},
         "has 2 x 3 voxels, not 3 x 2");
  expect(write("a.h5", "", six), {.pore = {0}}, "HDF5");
}

// Images made of numbers ----------------------------------------------------------------------------------------------

TEST(Generate, HitsThePorosity) {
  const auto expect = [](const Generator& what, double within) {
    const VoxelImage image = generate_image(what);
    EXPECT_EQ(image.dim(), what.dim);
    EXPECT_EQ(image.extent(), what.extent);
    EXPECT_NEAR(image.porosity(), what.porosity, within) << static_cast<int>(what.pattern);
  };
  const Places square{128, 96, 1};
  const Places cube{64, 48, 40};
  for (const double porosity : {0.9, 0.7}) {
    const double disc = 0.5 * 3.2 * 16 / (128 * 96);
    expect({.pattern = Pattern::spheres, .dim = 2, .extent = square, .porosity = porosity, .radius = 4}, disc);
    expect({.pattern = Pattern::spheres, .extent = cube, .porosity = porosity, .radius = 3}, 1e-3);
  }
  for (const double porosity : {0.9, 0.5, 0.2}) {
    expect({.pattern = Pattern::grains, .dim = 2, .extent = square, .porosity = porosity, .radius = 4}, 3e-3);
    expect({.pattern = Pattern::grains, .extent = cube, .porosity = porosity, .radius = 3}, 1e-3);
    expect({.pattern = Pattern::fibres, .extent = cube, .porosity = porosity, .radius = 1.5, .length = 70}, 3e-3);
    expect({.pattern = Pattern::blobs, .dim = 2, .extent = square, .porosity = porosity, .feature = 3}, 1e-4);
    expect({.pattern = Pattern::blobs, .extent = cube, .porosity = porosity, .feature = 20}, 1e-5);
  }
  for (const double porosity : {0.875, 1.0 - 3.14159 / 6.0}) {
    expect({.pattern = Pattern::array, .extent = {64, 64, 64}, .porosity = porosity}, 5e-3);
  }
}

TEST(Generate, IsTheSameForAnyThreads) {
  for (const Pattern pattern : {Pattern::spheres, Pattern::grains, Pattern::fibres, Pattern::blobs}) {
    Generator what{.pattern = pattern, .extent = {70, 40, 36}, .porosity = 0.8, .radius = 3, .feature = 2};
    const VoxelImage image = generate_image(what, 1);
    EXPECT_EQ(generate_image(what, 5), image);
    what.seed = 2;
    EXPECT_NE(generate_image(what), image);
  }
}

TEST(Generate, SpheresDoNotOverlap) {
  const VoxelImage image =
      generate_image({.pattern = Pattern::spheres, .extent = {32, 32, 32}, .porosity = 0.8, .radius = 4});
  // A sphere has about 268 voxels; some touch each other.
  const VoxelImage inverse(3, image.extent(), [&](const Places& at) { return image.pore(at); });
  const Connectivity bodies(inverse, {true, true, true});
  std::int64_t largest = 0;
  for (const PoreComponent& body : bodies.components()) largest = std::max(largest, body.voxels);
  EXPECT_GT(bodies.components().size(), 10U);
  EXPECT_LT(largest, 5 * 268);
}

TEST(Generate, ChannelsAndDucts) {
  const VoxelImage channel = generate_image({.pattern = Pattern::channel, .extent = {4, 8, 6}});
  EXPECT_EQ(channel.pores(), 4 * 7 * 6);
  const VoxelImage duct = generate_image({.pattern = Pattern::duct, .extent = {4, 8, 6}, .width = 3});
  EXPECT_EQ(duct.pores(), 4 * 3 * 3);
  EXPECT_EQ(Connectivity(duct, {true, true, true}).percolates(), (Directions{true, false, false}));
}

TEST(Generate, Refuses) {
  const auto refuses = [](const Generator& what) { EXPECT_THROW((void)generate_image(what), InputError); };
  refuses({.pattern = Pattern::spheres, .porosity = 0.3});
  refuses({.pattern = Pattern::grains, .porosity = 0.0});
  refuses({.pattern = Pattern::grains, .radius = 0.1});
  refuses({.pattern = Pattern::fibres, .length = -1});
  refuses({.pattern = Pattern::blobs, .feature = 0});
  refuses({.pattern = Pattern::blobs, .feature = NAN});
  refuses({.pattern = Pattern::array, .extent = {8, 8, 9}, .porosity = 0.9});
  refuses({.pattern = Pattern::array, .porosity = 0.3});
  refuses({.pattern = Pattern::duct, .dim = 2, .extent = {8, 8, 1}});
  refuses({.pattern = Pattern::channel, .width = 64});
}

// Meshes --------------------------------------------------------------------------------------------------------------

Mesh with_holes(const VoxelImage& image, int refine) {
  Mesh mesh = Mesh::of(std::make_shared<const VoxelImage>(image), refine);
  mesh.image = nullptr;
  for_voxels(image.extent(), [&](const Places& at) {
    if (image.solid(at)) mesh.holes.push_back({at, {at[0] + 1, at[1] + 1, at[2] + 1}});
  });
  return mesh;
}

TEST(ImageMesh, IsThatOfTheSameHoles) {
  std::mt19937 random(8);
  for (int i = 0; i < 200; ++i) {
    const VoxelImage image = any_image(random);
    if (image.pores() == 0) continue;
    const int refine = static_cast<int>(random() % 2);
    const Mesh mesh = Mesh::of(std::make_shared<const VoxelImage>(image), refine);
    const Mesh listed = with_holes(image, refine);
    Boundary boundary;
    boundary.holes.kind = random() % 2 == 0 ? SideKind::slip : SideKind::velocity;
    for (int a = 0; a < image.dim(); ++a) {
      for (const int side : {2 * a, 2 * a + 1}) boundary.sides[side].kind = SideKind::velocity;
      if (random() % 2 == 0) boundary.sides[2 * a].kind = boundary.sides[2 * a + 1].kind = SideKind::periodic;
    }
    const Parts parts = parts_of(mesh, boundary);
    const Parts of_listed = parts_of(listed, boundary);
    EXPECT_EQ(parts.count, of_listed.count);
    EXPECT_EQ(parts.of_box, of_listed.of_box);
    const Grid grid(mesh, boundary, true);
    const Grid expected(listed, boundary, true);
    ASSERT_EQ(grid.layout().null(), expected.layout().null());
    ASSERT_EQ(grid.cell_count(), expected.cell_count());
    EXPECT_EQ(grid.parts(), expected.parts());
    EXPECT_EQ(grid.numbering(), expected.numbering());
    for (Record record = 0; record <= grid.layout().null(); ++record) {
      for (int side = 0; side < 6; ++side) {
        ASSERT_EQ(grid.neighbour(record, side), expected.neighbour(record, side));
        ASSERT_EQ(grid.face(record, side), expected.face(record, side));
      }
      if (record >= grid.cell_count()) continue;
      EXPECT_EQ(grid.position(record), expected.position(record));
      EXPECT_EQ(grid.part(record), expected.part(record));
      EXPECT_EQ(grid.corner(record), expected.corner(record));
      EXPECT_EQ(grid.widths(record), expected.widths(record));
      for (int side = 0; side < 2 * image.dim(); ++side)
        EXPECT_EQ(grid.hole(record, side), expected.hole(record, side));
    }
  }
}

TEST(ImageMesh, IsAsWideAsItsVoxels) {
  const auto image = std::make_shared<const VoxelImage>(
      2, Places{4, 3, 1}, [](const Places& at) { return at[0] == 3; }, std::array<double, 3>{2e-6, 3e-6, 1});
  const Mesh mesh = Mesh::of(image, 2);
  EXPECT_EQ(mesh.cells, (Places{4, 3, 1}));
  EXPECT_EQ(mesh.refine, 2);
  EXPECT_EQ(mesh.lower, (Point{0, 0, 0}));
  EXPECT_DOUBLE_EQ(mesh.upper[0], 4.0);
  EXPECT_DOUBLE_EQ(mesh.upper[1], 4.5);
}

TEST(ImageMesh, IsValidated) {
  const auto image_of_pores = [](bool solid) {
    return std::make_shared<const VoxelImage>(2, Places{4, 3, 1}, [=](const Places&) { return solid; });
  };
  const auto message = [](const Problem& problem) {
    try {
      validate(problem);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Problem problem;
  problem.mesh = Mesh::of(image_of_pores(true), 1);
  EXPECT_NE(message(problem).find("mesh.image: no voxel is a pore"), std::string::npos) << message(problem);
  problem.mesh = Mesh::of(image_of_pores(false), 1);
  EXPECT_EQ(message(problem), "");
  problem.mesh.holes.push_back({});
  EXPECT_NE(message(problem).find("leave the holes out"), std::string::npos) << message(problem);
  problem.mesh.holes.clear();
  problem.mesh.cells[0] = 5;
  EXPECT_NE(message(problem).find("expected [4, 3], got [5, 3]"), std::string::npos) << message(problem);
  problem.mesh = Mesh::of(image_of_pores(false), 1);
  problem.boundary.single_holes.push_back({0, {}});
  EXPECT_NE(message(problem).find("has one condition"), std::string::npos) << message(problem);
}

TEST(ImageMesh, HasTheSolutionOfTheSameHoles) {
  const VoxelImage image(2, {4, 4, 1}, [](const Places& at) { return at[0] == 1 && (at[1] == 1 || at[1] == 2); });
  Problem problem;
  problem.mesh = Mesh::of(std::make_shared<const VoxelImage>(image), 1);
  for (int side = 0; side < 4; ++side) problem.boundary.sides[side].kind = SideKind::periodic;
  problem.force[0] = 1.0;
  Problem listed = problem;
  listed.mesh = with_holes(image, 1);
  const auto flow = solve(problem).solution;
  const auto expected = solve(listed).solution;
  ASSERT_EQ(flow.coefficients().size(), expected.coefficients().size());
  for (std::size_t i = 0; i < flow.coefficients().size(); ++i) {
    ASSERT_EQ(flow.coefficients()[i], expected.coefficients()[i]);
  }
  const auto forces = flow.forces();
  ASSERT_EQ(forces.size(), 1U);
  EXPECT_EQ(forces[0].name, "holes[0]");
  EXPECT_NEAR(forces[0].force[0], 14.0, 1e-6);  // of the fluid
}

TEST_F(ImageFile, IsInSolutionFiles) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  const auto image = std::make_shared<const VoxelImage>(
      2, Places{5, 4, 1}, [](const Places& at) { return at[0] == 1 && (at[1] == 1 || at[1] == 2); },
      std::array<double, 3>{2e-6, 3e-6, 1});
  Problem problem;
  problem.mesh = Mesh::of(image, 1);
  problem.boundary.sides[0].kind = problem.boundary.sides[1].kind = SideKind::periodic;
  problem.force[0] = 1.0;
  const fs::path file = folder_ / "flow.h5";
  const auto flow = solve(problem).solution;
  flow.save(file);
  const Solution loaded = load_solution(file);
  EXPECT_EQ(*loaded.problem().mesh.image, *image);
  EXPECT_EQ(loaded.problem().mesh.upper, problem.mesh.upper);
  const std::vector<Point> points{{0.4, 0.3, 0}, {3.1, 2.2, 0}};
  EXPECT_EQ(loaded.velocity(points), flow.velocity(points));
  // It is an image in a file, too.
  EXPECT_EQ(read_image(file, {.pore = {0}, .dataset = "mesh/image", .voxel = {2e-6, 3e-6, 1}}), *image);
  EXPECT_NE(message(file, {.pore = {0}, .dataset = "mesh/picture"}).find("the file has boundary, coefficients, mesh"),
            std::string::npos)
      << message(file, {.pore = {0}, .dataset = "mesh/picture"});
  EXPECT_NE(message(file, {.pore = {0}}).find("no dataset is named"), std::string::npos);
}

// Case files ----------------------------------------------------------------------------------------------------------

class ImageCase : public ImageFile {
 protected:
  [[nodiscard]] Case read(const std::string& image, const std::string& rest = "") const {
    return parse_case("[mesh]\nimage = " + image + "\n" + rest, (folder_ / "test.toml").string());
  }
  [[nodiscard]] std::string message(const std::string& image, const std::string& rest = "") const {
    try {
      (void)read(image, rest);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ImageCase, ReadsAFileBesideIt) {
  std::mt19937 random(9);
  const VoxelImage image = random_image(3, {5, 6, 7}, 0.5, random);
  write("rock.raw", "", numbers<std::uint16_t>(image, {2, 1, 0}));
  const Case c = read(
      "{file = \"rock.raw\", shape = [5, 6, 7], dtype = \"uint16\", axes = \"zyx\", pore = [0], "
      "crop = {lower = [1, 0, 0], upper = [5, 6, 7]}, mirror = [\"x\"], voxel = [2e-6, 2e-6, 3e-6]}",
      "refine = 1\n[boundary]\nxmin = {periodic = true}\n");
  EXPECT_EQ(c.problem.mesh.refine, 1);
  EXPECT_EQ(c.problem.mesh.cells, (Places{8, 6, 7}));
  EXPECT_DOUBLE_EQ(c.problem.mesh.upper[2], 10.5);
  const VoxelImage expected = image.crop({1, 0, 0}, {5, 6, 7}).mirror({true, false, false});
  for_voxels(expected.extent(),
             [&](const Places& at) { EXPECT_EQ(c.problem.mesh.image->solid(at), expected.solid(at)); });
  EXPECT_EQ(c.problem.mesh.image->voxel(), (std::array<double, 3>{2e-6, 2e-6, 3e-6}));
}

TEST_F(ImageCase, MakesAnImage) {
  const Case c = read("{generate = \"blobs\", shape = [32, 24], porosity = 0.6, feature = 3, seed = 5, voxel = 1e-6}");
  EXPECT_EQ(c.problem.mesh.dim, 2);
  EXPECT_NEAR(c.problem.mesh.image->porosity(), 0.6, 1e-3);
  EXPECT_EQ(*c.problem.mesh.image, generate_image({.pattern = Pattern::blobs,
                                                   .dim = 2,
                                                   .extent = {32, 24, 1},
                                                   .porosity = 0.6,
                                                   .feature = 3,
                                                   .seed = 5,
                                                   .voxel = {1e-6, 1e-6, 1e-6}}));
}

TEST_F(ImageCase, ErrorsNameKeyAndLine) {
  const auto expect = [](const std::string& said, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      EXPECT_NE(said.find(part), std::string::npos) << "got: " << said << "\nexpected: " << part;
    }
  };
  const std::string channel = "{generate = \"channel\", shape = [8, 8]}";
  for (const std::string key : {"cells = [8, 8]", "lower = [0, 0]", "upper = [1, 1]", "holes = []"}) {
    expect(message(channel, key), {"[mesh] " + key.substr(0, 5) + ", line 3", "leave either this key or `image` out"});
  }
  expect(message(channel, "fine = 2"), {"unknown key `fine` in [mesh], line 3"});
  expect(message("3"), {"[mesh] image, line 2", "expected a table"});
  expect(message("{pore = [0]}"), {"[mesh] image, line 2", "`file` is missing"});
  expect(message("{file = \"none.raw\", pore = [0]}"), {"[mesh] image, line 2", "none.raw", "there is no such file"});
  expect(message("{generate = \"blob\", shape = [8, 8]}"), {"[mesh] image.generate, line 2", "blobs"});
  expect(message("{generate = \"blobs\", shape = [8]}"), {"[mesh] image.shape, line 2"});
  expect(message("{generate = \"blobs\", shape = [8, 8], porosity = 2}"), {"[mesh] image, line 2", "`porosity` is 2"});
  expect(message("{generate = \"blobs\", shape = [8, 8], voxel = 0}"), {"[mesh] image.voxel, line 2"});
  expect(message("{generate = \"blobs\", shape = [8, 8], pore = [0]}"), {"unknown key `pore` in [mesh] image"});
  expect(message("{generate = \"blobs\", shape = [8, 8], voxel = [1, 1, 1]}"),
         {"[mesh] image.voxel, line 2", "has 3 entries, and other lists of the image 2"});
  write<std::uint8_t>("a.raw", "", {0, 1, 2, 3});
  expect(message("{file = \"a.raw\", shape = [2, 2], pore = [0], mirror = [\"z\"]}"), {"[mesh] image", "no z"});
  const std::string npy_file = npy("|u1", false, "(2, 1, 2)");
  write<std::uint8_t>("a.npy", npy_file, {0, 1, 2, 3});
  expect(message("{file = \"a.npy\", pore = [0], voxel = [1, 2]}"), {"[mesh] image", "lists have 2 entries"});
  expect(message("{file = \"a.raw\", shape = [2, 2], pore = [9]}"), {"[mesh] image, line 2", "values are 0, 1, 2, 3"});
  expect(message("{file = \"a.raw\", shape = [2, 2], dtype = \"uint\", pore = [9]}"), {"[mesh] image.dtype", "uint8"});
}

// Program -------------------------------------------------------------------------------------------------------------

TEST_F(Program, ChecksAnImage) {
  // A closed pore beside a channel along x that is two voxels wide.
  write("pores.raw", "####........#####..#############");
  write("case.toml",
        "[mesh]\nimage = {file = \"pores.raw\", shape = [4, 8], pore = [46], voxel = 2e-6}\nrefine = 1\n"
        "[physics]\nforce = [1, 0]\n[boundary]\nxmin = {periodic = true}\n");
  EXPECT_EQ(run("check case.toml"), 0) << errors();
  expect_contains(output(), {"voxels     4 x 8 of 2e-06 x 2e-06 m", "porosity   0.3125, of pores that percolate 0.2500",
                             "components 2 of pores", "percolates in x", "throats    100.0 %", "memory"});
  EXPECT_EQ(run("check case.toml --set mesh.image.pore=[1]"), 2);
  expect_contains(errors(), {"no voxel has the pore value 1: the values are 35, 46"});
  EXPECT_EQ(run("check case.toml --set mesh.image.file='\"none.raw\"'"), 2);
  expect_contains(errors(), {"none.raw", "there is no such file"});
}

}  // namespace
}  // namespace solenoid
