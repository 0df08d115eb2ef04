/// \file
/// Files of solutions and of checkpoints, which are several solutions of one problem (docs/solution-file.md). What is
/// in them is said once, by describe() and Shape, for those who write and those who read.

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/available_memory.hpp"
#include "base/hdf5.hpp"
#include "base/host_vector.hpp"
#include "base/new_file.hpp"
#include "base/parallel.hpp"
#include "base/unset.hpp"
#include "element/moments.hpp"
#include "level/coefficients.hpp"
#include "mesh/grid.hpp"
#include "mesh/places.hpp"
#include "problem/affine_map.hpp"
#include "problem/names.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/checkpoint.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"
#include "solenoid/solution.hpp"
#include "solenoid/version.hpp"
#include "solution/file/envelope.hpp"
#include "solution/joined.hpp"

namespace solenoid {
namespace {

namespace fs = std::filesystem;
using hdf5::expect;
using hdf5::Failure;
using hdf5::Handle;

constexpr const char* about =
    "coefficients[z, y, x, :] (2D: [y, x, :]) are the values at the place (x, y, z) of the lattice of cells: those of "
    "the cell there, (dim + 1) (order + 1)^dim numbers, velocity components before pressure (Poisson's equation: those "
    "of u). In directions that are not periodic there is one more place than there are cells: normal velocities on "
    "faces of the upper side belong to it. docs/solution-file.md and docs/method.md say which function each number is "
    "the coefficient of.";

/// Largest order that solutions can be evaluated of.
constexpr int largest_order = 12;

/// More than schemes want.
constexpr int most_states = 16;

// The type of numbers in a file, whatever the machine, and in memory.
template <class T>
hid_t file_type();
template <>
hid_t file_type<double>() {
  return H5T_IEEE_F64LE;
}
template <>
hid_t file_type<int>() {
  return H5T_STD_I32LE;
}
template <>
hid_t file_type<char>() {
  return H5T_STD_U8LE;
}
template <class T>
hid_t memory_type();
template <>
hid_t memory_type<double>() {
  return H5T_NATIVE_DOUBLE;
}
template <>
hid_t memory_type<int>() {
  return H5T_NATIVE_INT;
}
template <>
hid_t memory_type<char>() {
  return H5T_NATIVE_UCHAR;
}

// The problem ---------------------------------------------------------------------------------------------------------

/// Names and numbers of a problem, which `Io` writes or reads.
template <class Io>
void describe(Io& io, Problem& problem) {
  Mesh& mesh = problem.mesh;
  io.group("problem");
  io.choice("equation", problem.equation);
  io.number("dimension", mesh.dim, 2, 3);
  io.number("order", problem.order, 0, largest_order);
  io.flag("lumped", problem.lumped);
  io.number("viscosity", problem.viscosity);
  io.number("mass", problem.mass);
  const auto dim = static_cast<std::size_t>(mesh.dim);
  io.group("mesh");
  io.numbers("lower", std::span(mesh.lower).first(dim));
  io.numbers("upper", std::span(mesh.upper).first(dim));
  io.edges("edges", mesh);
  io.numbers("cells", std::span(mesh.cells).first(dim));
  io.number("refine", mesh.refine, 0, std::numeric_limits<int>::max());
  io.holes("holes", mesh.holes, dim);
  io.image("image", "voxel", mesh);
  io.group("boundary");
  for (std::size_t side = 0; side < 2 * dim; ++side) {
    io.choice(std::string(side_names.at(side)), problem.boundary.sides.at(side).kind);
  }
  io.choice("holes", problem.boundary.holes.kind);
  for (int side = 0; side < 2 * mesh.dim; ++side) io.parts(fmt::format("{}_boxes", side_names[side]), problem, side);
  io.single_holes("holes_each", problem);
}

/// Of a problem with coefficients by cell: those that vary as numbers for the lattice of cells, others stay empty.
struct ByCell {
  ViscousForm form = ViscousForm::gradient;
  std::vector<double> viscosity{};
  std::vector<double> mass{};
  std::vector<double> points{};  ///< of a viscosity at points: (k + 2)^dim numbers for each cell, x fastest
};

int viscosity_points_of_cell(const Problem& problem) {
  return ViscosityPoints::in_cell(problem.mesh.dim, problem.order);
}

template <class Io>
void describe(Io& io, ByCell& by_cell, const Problem& problem) {
  io.group("by_cell");
  io.choice("form", by_cell.form);
  io.cells("viscosity", by_cell.viscosity, problem.mesh);
  io.cells("mass", by_cell.mass, problem.mesh);
  io.cells("viscosity_points", by_cell.points, problem.mesh, viscosity_points_of_cell(problem));
}

/// Cells, x y z.
std::array<std::int64_t, 3> extent_of(const Mesh& mesh) {
  std::array<std::int64_t, 3> extent{1, 1, 1};
  for (int a = 0; a < mesh.dim; ++a) extent[a] = std::int64_t{mesh.cells[a]} << mesh.refine;
  return extent;
}
/// The same as z x y x x or y x x, with so many numbers each.
std::vector<hsize_t> shape_of_cells(const Mesh& mesh, int numbers = 1) {
  const auto extent = extent_of(mesh);
  std::vector<hsize_t> shape(extent.rend() - mesh.dim, extent.rend());
  if (numbers > 1) shape.push_back(static_cast<hsize_t>(numbers));
  return shape;
}

/// Coarse boxes, z x y x x or y x x.
std::vector<hsize_t> shape_of_boxes(const Mesh& mesh) { return {mesh.cells.rend() - mesh.dim, mesh.cells.rend()}; }

/// Kinds by their numbers in parts of sides and of single holes; whole sides alone are periodic.
constexpr std::array numbered_kinds{SideKind::velocity, SideKind::slip, SideKind::outflow};

char number_of(SideKind kind) {
  return static_cast<char>(std::find(numbered_kinds.begin(), numbered_kinds.end(), kind) - numbered_kinds.begin());
}

/// The faces of coarse boxes on a side of the bounding box.
struct BoxFaces {
  std::array<int, 3> count{1, 1, 1};  ///< 1 in the direction normal to the side
  Point lower{};
  Point width{};
  std::optional<AffineMap> map;

  BoxFaces(const Mesh& mesh, int side) : lower(mesh.lower) {
    for (int a = 0; a < mesh.dim; ++a) {
      if (a != side / 2) count[a] = mesh.cells[a];
      width[a] = length_along(mesh, a) / count[a];
    }
    if (!mesh.edges) return;
    map.emplace(mesh.dim, mesh.lower, *mesh.edges);
    lower = {};
  }
  /// z, y, x, without the direction of one.
  [[nodiscard]] std::vector<hsize_t> sizes(int dim, int side) const {
    std::vector<hsize_t> sizes;
    for (int a = dim - 1; a >= 0; --a) {
      if (a != side / 2) sizes.push_back(static_cast<hsize_t>(count[a]));
    }
    return sizes;
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t product = 1;
    for (const int n : count) product *= static_cast<std::size_t>(n);
    return product;
  }
  [[nodiscard]] std::array<int, 3> box(std::size_t face) const {
    const auto nx = static_cast<std::size_t>(count[0]);
    const auto ny = static_cast<std::size_t>(count[1]);
    return {static_cast<int>(face % nx), static_cast<int>(face / nx % ny), static_cast<int>(face / nx / ny)};
  }
  /// Of the face that a point on the side lies in.
  [[nodiscard]] std::size_t at(const Point& in_space) const {
    const Point x = map ? map->pulled_back(in_space) : in_space;
    std::size_t face = 0;
    for (int a = 2; a >= 0; --a) {
      const double place = count[a] == 1 ? 0.0 : std::floor((x[a] - lower[a]) / width[a]);
      face = face * count[a] + static_cast<std::size_t>(std::clamp(place, 0.0, count[a] - 1.0));
    }
    return face;
  }
};

/// What a checkpoint has besides its solutions.
struct Steps {
  int number = 0;
  int states = 0;
  std::vector<double> times{};
  std::vector<double> lengths{};
  std::vector<double> gradients{};  ///< three for each state
  std::string set{};                ///< names, each with a space behind it
  std::string note{};
};

template <class Io>
void describe(Io& io, Steps& steps) {
  io.group("time");
  io.number("steps", steps.number, 0, std::numeric_limits<int>::max());
  io.number("states", steps.states, 1, most_states);
  steps.times.resize(steps.states);
  steps.lengths.resize(steps.states);
  steps.gradients.resize(3 * static_cast<std::size_t>(steps.states));
  io.numbers("times", std::span(steps.times));
  io.numbers("lengths", std::span(steps.lengths));
  io.numbers("gradients", std::span(steps.gradients));
  io.bytes("set", steps.set);
  io.bytes("note", steps.note);
}

/// Of averages what is no field.
struct Averaged {
  double start = 0.0;
  double length = 0.0;
};

template <class Io>
void describe(Io& io, Averaged& averaged) {
  io.group("averages");
  io.number("start", averaged.start);
  io.number("length", averaged.length);
}

Handle scalar_space() { return {H5Screate(H5S_SCALAR), H5Sclose, "no memory"}; }

/// For describe(): writes attributes of groups.
class Writer {
 public:
  explicit Writer(hid_t file) : file_(file), group_(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "") {}

  void group(const char* name) {
    group_ = Handle(H5Gcreate2(file_, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, name);
  }
  void text(const std::string& name, std::string_view value) {
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, name);
    expect(H5Tset_size(type, value.size()), name);
    expect(H5Tset_strpad(type, H5T_STR_NULLPAD), name);
    write(name, type, type, scalar_space(), value.data());
  }
  template <class Choice>
  void choice(const std::string& name, Choice value) {
    text(name, name_of(value));
  }
  template <class T>
  void number(const std::string& name, const T& value, int /*least*/ = 0, int /*most*/ = 0) {
    write(name, file_type<T>(), memory_type<T>(), scalar_space(), &value);
  }
  template <class T, std::size_t extent>
  void numbers(const std::string& name, std::span<T, extent> values) {
    const hsize_t count = values.size();
    write(name, file_type<T>(), memory_type<T>(), Handle(H5Screate_simple(1, &count, nullptr), H5Sclose, name),
          values.data());
  }
  void holes(const char* name, const std::vector<IndexBox>& boxes, std::size_t dim) {
    std::vector<int> values;
    for (const auto& [lower, upper] : boxes) {
      for (const auto& corner : {lower, upper}) {
        values.insert(values.end(), corner.begin(), corner.begin() + static_cast<int>(dim));
      }
    }
    dataset(name, std::array<hsize_t, 3>{boxes.size(), 2, dim}, std::span<const int>(values));
  }
  /// Nothing where it is false.
  void flag(const std::string& name, bool value) {
    if (value) number(name, 1);
  }
  /// Nothing where cells are boxes.
  void edges(const std::string& name, const Mesh& mesh) {
    if (!mesh.edges) return;
    std::vector<double> values;
    for (int a = 0; a < mesh.dim; ++a) {
      values.insert(values.end(), (*mesh.edges)[a].begin(), (*mesh.edges)[a].begin() + mesh.dim);
    }
    numbers(name, std::span(values));
  }
  /// Nothing where there is none.
  void image(const char* name, const char* voxel, const Mesh& mesh) {
    if (mesh.image == nullptr) return;
    const VoxelImage& image = *mesh.image;
    std::array<double, 3> size = image.voxel();
    numbers(voxel, std::span(size).first(static_cast<std::size_t>(mesh.dim)));
    std::vector<char> solid;
    solid.reserve(image.size());
    for (int z = 0; z < image.extent()[2]; ++z) {
      for (int y = 0; y < image.extent()[1]; ++y) {
        for (int x = 0; x < image.extent()[0]; ++x) solid.push_back(image.solid({x, y, z}) ? 1 : 0);
      }
    }
    dataset(name, shape_of_boxes(mesh), std::span<const char>(solid));
  }
  /// Nothing where there are none.
  void cells(const char* name, const std::vector<double>& values, const Mesh& mesh, int numbers = 1) {
    if (!values.empty()) dataset(name, shape_of_cells(mesh, numbers), std::span<const double>(values));
  }
  void bytes(const char* name, const std::string& value) {
    dataset(name, std::array<hsize_t, 1>{value.size()}, std::span<const char>(value));
  }
  /// Nothing where a side is of one kind.
  void parts(const std::string& name, const Problem& problem, int side) {
    const SideKinds kinds(problem.mesh, problem.boundary, side);
    if (kinds.uniform()) return;
    const BoxFaces faces(problem.mesh, side);
    std::vector<char> numbers;
    for (std::size_t face = 0; face < faces.size(); ++face) numbers.push_back(number_of(kinds.at(faces.box(face))));
    dataset(name.c_str(), faces.sizes(problem.mesh.dim, side), std::span<const char>(numbers));
  }
  void single_holes(const char* name, const Problem& problem) {
    std::vector<char> numbers;
    for (const int condition : hole_sides(problem.mesh, problem.boundary)) {
      numbers.push_back(number_of(hole_side(problem.boundary, condition).kind));
    }
    const char other = number_of(problem.boundary.holes.kind);
    if (std::all_of(numbers.begin(), numbers.end(), [&](char number) { return number == other; })) return;
    dataset(name, std::array<hsize_t, 1>{numbers.size()}, std::span<const char>(numbers));
  }

  /// Of datasets that lie in the file as they are, the same at any time.
  static Handle dataset_properties() {
    Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "no memory");
    expect(H5Pset_layout(properties, H5D_CONTIGUOUS), "layout");
    expect(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY), "layout");
    expect(H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER), "layout");
    expect(H5Pset_obj_track_times(properties, false), "layout");
    return properties;
  }

  template <class T>
  void dataset(const char* name, std::span<const hsize_t> shape, std::span<const T> values) {
    const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose, name);
    const Handle dataset(
        H5Dcreate2(group_, name, file_type<T>(), space, H5P_DEFAULT, dataset_properties(), H5P_DEFAULT), H5Dclose,
        name);
    if (values.empty()) return;
    expect(H5Dwrite(dataset, memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
  }
  void write(const std::string& name, hid_t type, hid_t in_memory, const Handle& space, const void* values) {
    write_to(group_, name, type, in_memory, space, values);
  }
  static void write_to(hid_t object, const std::string& name, hid_t type, hid_t in_memory, const Handle& space,
                       const void* values) {
    const Handle attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
    expect(H5Awrite(attribute, in_memory, values), name);
  }

 private:
  hid_t file_;
  Handle group_;
};

/// \throws Failure unless an object is in the file itself, under this name.
void expect_here(hid_t group, const std::string& name) {
  H5L_info_t info{};
  expect(H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT), fmt::format("there is no `{}`", name));
  if (info.type != H5L_TYPE_HARD) throw Failure(fmt::format("`{}` is a link to elsewhere", name));
}

/// A dataset of this type and shape whose values lie in the file as they are: no filters, nothing in other files.
/// Nothing is allocated for it yet.
Handle open_dataset(hid_t group, const std::string& name, hid_t type, std::span<const hsize_t> shape,
                    std::size_t bytes_of_number) {
  expect_here(group, name);
  Handle dataset(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose, fmt::format("`{}` is no dataset", name));
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose, name);
  if (H5Pget_layout(properties) != H5D_CONTIGUOUS || H5Pget_nfilters(properties) != 0 ||
      H5Pget_external_count(properties) != 0) {
    throw Failure(
        fmt::format("`{}` is not stored as it is: expected no chunks, filters, or parts in other files", name));
  }
  const Handle found_type(H5Dget_type(dataset), H5Tclose, name);
  const Handle space(H5Dget_space(dataset), H5Sclose, name);
  std::array<hsize_t, 5> found{};
  const bool same_rank =
      H5Sget_simple_extent_ndims(space) == static_cast<int>(shape.size()) && shape.size() <= found.size();
  const bool same = same_rank && H5Tequal(found_type, type) > 0 &&
                    H5Sget_simple_extent_dims(space, found.data(), nullptr) >= 0 &&
                    std::equal(shape.begin(), shape.end(), found.begin());
  hsize_t bytes = bytes_of_number;
  for (const hsize_t count : shape) bytes *= count;
  if (!same || H5Dget_storage_size(dataset) != bytes) {
    throw Failure(fmt::format("`{}` has another type or shape; expected ({})", name, fmt::join(shape, ", ")));
  }
  return dataset;
}

/// For describe(): reads attributes of groups, whose sizes are known before.
class Reader {
 public:
  explicit Reader(hid_t file) : file_(file), group_(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "it has no root") {}

  void group(const char* name) {
    expect_here(file_, name);
    group_ = Handle(H5Gopen2(file_, name, H5P_DEFAULT), H5Gclose, fmt::format("`{}` is no group", name));
  }
  template <class Choice>
  void choice(const std::string& name, Choice& value) {
    const Handle attribute = open(group_, name, H5S_SCALAR, 1);
    const Handle type(H5Aget_type(attribute), H5Tclose, name);
    std::array<char, 64> text{};
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || H5Tget_size(type) >= text.size()) {
      throw Failure(fmt::format("`{}` is no short text", name));
    }
    expect(H5Aread(attribute, type, text.data()), name);
    for (const auto& [word, choice] : Names<Choice>::all) {
      if (word != text.data()) continue;
      value = choice;
      return;
    }
    throw Failure(fmt::format("`{}` is none of the choices that there are", name));
  }
  void number(const std::string& name, int& value, int least, int most) {
    read(group_, name, H5S_SCALAR, std::span(&value, 1));
    if (value < least || value > most) {
      throw Failure(fmt::format("`{}` is {}, expected {} to {}", name, value, least, most));
    }
  }
  void flag(const std::string& name, bool& value) { value = H5Aexists(group_, name.c_str()) > 0; }
  void number(const std::string& name, double& value) { read(group_, name, H5S_SCALAR, std::span(&value, 1)); }
  template <class T, std::size_t extent>
  void numbers(const std::string& name, std::span<T, extent> values) {
    read(group_, name, H5S_SIMPLE, std::span<T>(values));
  }
  void holes(const char* name, std::vector<IndexBox>& boxes, std::size_t dim) {
    std::vector<int> values;
    list(name, values, std::array<hsize_t, 2>{2, dim});
    boxes.resize(values.size() / (2 * dim));
    const int* from = values.data();
    for (IndexBox& box : boxes) {
      for (auto* corner : {&box.lower, &box.upper}) {
        std::copy_n(from, dim, corner->begin());
        from += dim;
      }
    }
  }
  void edges(const std::string& name, Mesh& mesh) {
    if (H5Aexists(group_, name.c_str()) <= 0) return;
    const auto dim = static_cast<std::size_t>(mesh.dim);
    std::vector<double> values(dim * dim);
    numbers(name, std::span(values));
    mesh.edges.emplace();
    for (std::size_t a = 0; a < dim; ++a) std::copy_n(&values[a * dim], dim, (*mesh.edges)[a].begin());
  }
  void image(const char* name, const char* voxel, Mesh& mesh) {
    if (!exists(name)) return;
    std::array<double, 3> size{1, 1, 1};
    numbers(voxel, std::span(size).first(static_cast<std::size_t>(mesh.dim)));
    const std::vector<char> solid = small_numbers(name, shape_of_boxes(mesh), 1);
    const auto place = [&](const std::array<int, 3>& at) {
      return at[0] + mesh.cells[0] * (at[1] + std::int64_t{mesh.cells[1]} * at[2]);
    };
    std::array<int, 3> extent{1, 1, 1};
    std::copy_n(mesh.cells.begin(), mesh.dim, extent.begin());
    mesh.image = std::make_shared<const VoxelImage>(
        mesh.dim, extent, [&](const std::array<int, 3>& at) { return solid[place(at)] != 0; }, size);
  }
  void cells(const char* name, std::vector<double>& values, const Mesh& mesh, int numbers = 1) {
    if (!exists(name)) return;
    const Handle dataset =
        open_dataset(group_, name, file_type<double>(), shape_of_cells(mesh, numbers), sizeof(double));
    const hsize_t bytes = H5Dget_storage_size(dataset);
    expect_within(bytes, name);
    values.resize(bytes / sizeof(double));
    expect(H5Dread(dataset, memory_type<double>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
  }
  void bytes(const char* name, std::string& value) { list(name, value, {}); }
  /// As regions of the kinds that the rest of the side does not have.
  void parts(const std::string& name, Problem& problem, int side) {
    if (!exists(name)) return;
    const BoxFaces faces(problem.mesh, side);
    const auto numbers = std::make_shared<const std::vector<char>>(kinds(name, faces.sizes(problem.mesh.dim, side)));
    for (const SideKind kind : numbered_kinds) {
      const char number = number_of(kind);
      if (kind == problem.boundary.sides.at(side).kind) continue;
      if (std::find(numbers->begin(), numbers->end(), number) == numbers->end()) continue;
      const auto where = [faces, numbers, number](const Point& x) {
        return (*numbers)[faces.at(x)] == number ? 1.0 : 0.0;
      };
      problem.boundary.regions.push_back({side, ScalarField(std::function<double(const Point&)>(where)), {kind}});
    }
  }
  void single_holes(const char* name, Problem& problem) {
    if (!exists(name)) return;
    const std::vector<char> numbers = kinds(name, std::array{hsize_t{problem.mesh.holes.size()}});
    for (int i = 0; i < std::ssize(numbers); ++i) {
      const SideKind kind = numbered_kinds.at(numbers[i]);
      if (kind != problem.boundary.holes.kind) problem.boundary.single_holes.push_back({i, {kind}});
    }
  }

  /// An attribute of so many numbers.
  template <class T>
  static void read(hid_t object, const std::string& name, H5S_class_t kind, std::span<T> values) {
    const Handle attribute = open(object, name, kind, values.size());
    const Handle type(H5Aget_type(attribute), H5Tclose, name);
    if (H5Tequal(type, file_type<T>()) <= 0) throw Failure(fmt::format("`{}` is of another type of numbers", name));
    expect(H5Aread(attribute, memory_type<T>(), values.data()), name);
  }

 private:
  [[nodiscard]] bool exists(const std::string& name) const { return H5Lexists(group_, name.c_str(), H5P_DEFAULT) > 0; }

  /// A dataset of numbers of kinds.
  [[nodiscard]] std::vector<char> kinds(const std::string& name, std::span<const hsize_t> shape) const {
    return small_numbers(name, shape, std::ssize(numbered_kinds) - 1);
  }

  /// A dataset of numbers from 0 to `most`.
  [[nodiscard]] std::vector<char> small_numbers(const std::string& name, std::span<const hsize_t> shape,
                                                std::ptrdiff_t most) const {
    expect_here(group_, name);
    const Handle dataset = open_dataset(group_, name, file_type<char>(), shape, 1);
    const hsize_t count = H5Dget_storage_size(dataset);
    expect_within(count, name);
    std::vector<char> numbers(count);
    expect(H5Dread(dataset, memory_type<char>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), name);
    const auto known = [&](char number) { return number >= 0 && number <= most; };
    if (!std::all_of(numbers.begin(), numbers.end(), known)) {
      throw Failure(fmt::format("`{}` has numbers that mean nothing: expected 0 to {}", name, most));
    }
    return numbers;
  }

  /// Before memory is taken. \throws Failure if there are more bytes than the file has.
  void expect_within(hsize_t bytes, const std::string& name) const {
    hsize_t file_size = 0;
    expect(H5Fget_filesize(file_, &file_size), name);
    if (bytes > file_size) throw Failure(fmt::format("`{}` is longer than the file", name));
  }

  static Handle open(hid_t object, const std::string& name, H5S_class_t kind, hsize_t count) {
    Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, fmt::format("there is no `{}`", name));
    const Handle space(H5Aget_space(attribute), H5Sclose, name);
    hsize_t found = 1;
    const bool same = H5Sget_simple_extent_type(space) == kind &&
                      (kind == H5S_SCALAR || (H5Sget_simple_extent_ndims(space) == 1 &&
                                              H5Sget_simple_extent_dims(space, &found, nullptr) == 1));
    if (!same || found != count) throw Failure(fmt::format("`{}` has not {} values", name, count));
    return attribute;
  }

  /// A dataset of as many entries as it has, each of the shape `entry`.
  template <class Values>
  void list(const char* name, Values& values, std::span<const hsize_t> entry) {
    using T = typename Values::value_type;
    hsize_t size = 1;
    for (const hsize_t count : entry) size *= count;
    expect_here(group_, name);
    hsize_t count = 0;
    {
      const Handle dataset(H5Dopen2(group_, name, H5P_DEFAULT), H5Dclose, fmt::format("`{}` is no dataset", name));
      count = H5Dget_storage_size(dataset) / (size * sizeof(T));
    }
    std::vector<hsize_t> shape{count};
    shape.insert(shape.end(), entry.begin(), entry.end());
    const Handle dataset = open_dataset(group_, name, file_type<T>(), shape, sizeof(T));
    if (count == 0) return;
    expect_within(count * size * sizeof(T), name);
    values.resize(count * size);
    expect(H5Dread(dataset, memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
  }

  hid_t file_;
  Handle group_;
};

// The coefficients ----------------------------------------------------------------------------------------------------

/// The dataset of a grid's coefficients, by place.
struct Shape {
  std::array<std::int64_t, 3> places{1, 1, 1};
  int dim = 3;
  int record = 1;
  int states = 0;  ///< of a checkpoint

  /// Of one solution.
  [[nodiscard]] std::int64_t count() const { return places[0] * places[1] * places[2]; }
  [[nodiscard]] std::int64_t bytes() const { return count() * record * static_cast<std::int64_t>(sizeof(double)); }
  [[nodiscard]] std::int64_t bytes_of_all() const { return std::max(1, states) * bytes(); }
  /// z, y, x, value; in 2D without z. Before them the state of a checkpoint.
  [[nodiscard]] std::vector<hsize_t> sizes() const {
    std::vector<hsize_t> sizes;
    if (states > 0) sizes.push_back(static_cast<hsize_t>(states));
    for (int a = dim - 1; a >= 0; --a) sizes.push_back(static_cast<hsize_t>(places[a]));
    sizes.push_back(static_cast<hsize_t>(record));
    return sizes;
  }
};

/// A dataset of coefficients, of one solution or of several.
struct Block {
  std::string name;
  Shape shape;
  std::int64_t offset = 0;  ///< in the file
};

/// Of the other fields of averages than the mean flow: the stresses and the dissipation.
Problem scalar_of(Problem problem) {
  problem.equation = EquationKind::poisson;
  problem.varying_viscosity.reset();
  problem.varying_mass.reset();
  problem.form.reset();
  return problem;
}

/// Between numbers and what lies in the file.
void convert_endianness(std::span<double> values) {
  if constexpr (std::endian::native == std::endian::big) {
    for (double& value : values) {
      auto bytes = std::bit_cast<std::array<unsigned char, sizeof(double)>>(value);
      std::reverse(bytes.begin(), bytes.end());
      value = std::bit_cast<double>(bytes);
    }
  }
}

/// Of the values at a place as they lie in the file: CRC-32 of the place's number as 8 bytes, the lowest first, and the
/// values. Checksums of places are added up, so that any part of them may come first.
std::uint64_t checksum_of(std::int64_t number, std::span<const double> values) {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> (8 * i));
  }
  const uLong checksum = crc32(crc32(0, nullptr, 0), bytes.data(), bytes.size());
  return crc32(checksum, reinterpret_cast<const Bytef*>(values.data()), static_cast<uInt>(values.size_bytes()));
}

/// A few megabytes of places at a time: calls before(values, offset in the dataset in bytes), then work(number of a
/// place, place, its values) for each, then after(values, offset). Returns the sum of what `work` does.
template <class Before, class Work, class After>
std::uint64_t for_places(const Shape& shape, const Before& before, const Work& work, const After& after) {
  const Ranges pieces{shape.count(), std::max<std::int64_t>(1, (std::int64_t{1} << 20) / shape.record)};
  std::atomic<std::uint64_t> sum{0};
  std::vector<double> values;
  for (std::int64_t i = 0; i < pieces.number(); ++i) {
    const auto [begin, end] = pieces[i];
    const std::int64_t offset = begin * shape.record * static_cast<std::int64_t>(sizeof(double));
    values.resize((end - begin) * shape.record);
    before(values, offset);
    parallel_ranges({end - begin, 256}, [&, begin = begin](CellRange range, std::int64_t) {
      std::uint64_t partial = 0;
      for (auto j = range.begin; j < range.end; ++j) {
        const std::int64_t number = begin + j;
        const std::int64_t row = number / shape.places[0];
        const std::array<int, 3> place{static_cast<int>(number % shape.places[0]),
                                       static_cast<int>(row % shape.places[1]),
                                       static_cast<int>(row / shape.places[1])};
        partial += work(number, place, std::span(values).subspan(j * shape.record, shape.record));
      }
      sum += partial;
    });
    after(values, offset);
  }
  return sum;
}

/// Of a solution before which there are so many others. Returns the checksum.
std::uint64_t write_coefficients(std::ostream& file, std::int64_t data_offset, const Shape& shape, int before,
                                 const Solution& solution) {
  const Problem& problem = solution.problem();
  const double* const coefficients = solution.coefficients().data();
  return for_places(
      shape, [](const auto&, std::int64_t) {},
      [&](std::int64_t number, const auto& place, std::span<double> own) {
        std::fill(own.begin(), own.end(), 0.0);
        for_each_record_at(solution.grid(), problem.order, problem.equation, place,
                           [&](Record r, int first, int count) {
                             const double* from = coefficients + record_offset(r, shape.record);
                             for (int i = first; i < first + count; ++i) own[i] = from[interleave * i];
                           });
        convert_endianness(own);
        return checksum_of(before * shape.count() + number, own);
      },
      [&](const std::vector<double>& values, std::int64_t offset) {
        file.seekp(data_offset + before * shape.bytes() + offset);
        file.write(reinterpret_cast<const char*>(values.data()), std::ssize(values) * std::streamsize{sizeof(double)});
      });
}

/// The same for reading. Returns the checksum of what was read. \throws Failure if the file ends before
std::uint64_t read_coefficients(std::istream& file, std::int64_t data_offset, const Shape& shape, int before,
                                const Problem& problem, const Grid& grid, HostVector& coefficients) {
  return for_places(
      shape,
      [&](std::vector<double>& values, std::int64_t offset) {
        file.seekg(data_offset + before * shape.bytes() + offset);
        file.read(reinterpret_cast<char*>(values.data()), std::ssize(values) * std::streamsize{sizeof(double)});
        if (!file) throw Failure("it ends too early");
      },
      [&](std::int64_t number, const auto& place, std::span<double> own) {
        const std::uint64_t checksum = checksum_of(before * shape.count() + number, own);
        convert_endianness(own);
        for_each_record_at(grid, problem.order, problem.equation, place, [&](Record r, int first, int count) {
          double* to = coefficients.data() + record_offset(r, shape.record);
          for (int i = first; i < first + count; ++i) to[interleave * i] = own[i];
        });
        return checksum;
      },
      [](const auto&, std::int64_t) {});
}

Handle file_access() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no memory");
  expect(H5Pset_fapl_sec2(access), "no memory");
  expect(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "no memory");
#if H5_VERSION_GE(1, 10, 7)
  // Nobody else knows the file while it is written, and no file system needs to know locks.
  expect(H5Pset_file_locking(access, false, true), "no memory");
#endif
  return access;
}

// Writing -------------------------------------------------------------------------------------------------------------

/// \throws Failure unless the file may become so long. The HDF5 library is not up to a disk that is full.
void reserve(const fs::path& file, std::int64_t bytes) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  const bool full = descriptor < 0 || (fallocate(descriptor, 0, 0, bytes) != 0 && errno != EOPNOTSUPP);
  if (descriptor >= 0) close(descriptor);
  if (full) throw Failure("no room");
}

/// The HDF5 file, but for envelope and coefficients. Finds out where the blocks of these lie.
void write_hdf5(const fs::path& file, const std::string& kind, Problem problem, std::optional<ByCell> by_cell,
                Steps* steps, Averaged* averaged, std::span<Block> blocks) {
  const hdf5::Session session;
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "no memory");
  expect(H5Pset_userblock(creation, Envelope::size), "no memory");
  expect(H5Pset_obj_track_times(creation, false), "no memory");
  const Handle handle(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, creation, file_access()), H5Fclose, "create");
  Writer writer(handle);
  writer.text("format", "solenoid " + kind);
  writer.text("program", fmt::format("solenoid {}", version));
  writer.text("about", about);
  describe(writer, problem);
  if (by_cell) describe(writer, *by_cell, problem);
  if (steps != nullptr) describe(writer, *steps);
  if (averaged != nullptr) describe(writer, *averaged);

  for (Block& block : blocks) {
    const auto sizes = block.shape.sizes();
    const Handle space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose, "no memory");
    const Handle dataset(H5Dcreate2(handle, block.name.c_str(), file_type<double>(), space, H5P_DEFAULT,
                                    Writer::dataset_properties(), H5P_DEFAULT),
                         H5Dclose, block.name);
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) throw Failure(block.name);
    block.offset = static_cast<std::int64_t>(offset);
  }
}

// Reading -------------------------------------------------------------------------------------------------------------

/// What solves with it, or evaluates it, is told.
ScalarField unknown_field(const std::string& file, const char* what) {
  return {ScalarField::Bulk([file, what](std::span<const Point>, std::span<double>) {
            throw InputError(
                fmt::format("'{}' has no {}: a solution file holds kinds of sides, but no forces and no "
                            "boundary data; state the problem with them",
                            file, what));
          }),
          what};
}

Problem without_data(Problem problem, const std::string& file) {
  problem.force.fill(unknown_field(file, "force"));
  for (Side& side : problem.boundary.sides) side.data.fill(unknown_field(file, "boundary data"));
  problem.boundary.holes.data.fill(unknown_field(file, "boundary data"));
  for (SideRegion& region : problem.boundary.regions) region.condition.data.fill(unknown_field(file, "boundary data"));
  for (HoleSide& hole : problem.boundary.single_holes) hole.condition.data.fill(unknown_field(file, "boundary data"));
  return problem;
}

std::int64_t bytes_of(std::span<const Block> blocks) {
  std::int64_t bytes = 0;
  for (const Block& block : blocks) bytes += block.shape.bytes_of_all();
  return bytes;
}

/// \throws ResourceError unless grid and coefficients fit into memory.
void check_memory(const Problem& problem, std::span<const Block> blocks) {
  const Shape& shape = blocks.front().shape;
  constexpr std::int64_t of_place = 64;  // of a grid: lattice, position, neighbours and faces
  const std::int64_t needed = bytes_of(blocks) + shape.count() * of_place;
  const std::int64_t available = available_memory();
  if (needed <= available && shape.count() < std::numeric_limits<Record>::max() - 2 * interleave) return;
  throw ResourceError(fmt::format(
      "not enough memory: the solution of order {} at {} places needs {:.2f} GB, {:.2f} GB "
      "are available",
      problem.order, shape.count(), static_cast<double>(needed) * 1e-9, static_cast<double>(available) * 1e-9));
}

/// How many places there will be, before there is a grid.
Shape shape_of(const Problem& problem, int states) {
  Shape shape{.dim = problem.mesh.dim,
              .record = record_size(problem.mesh.dim, problem.order, problem.equation),
              .states = states};
  for (int a = 0; a < shape.dim; ++a) {
    const bool wraps = problem.boundary.sides[2 * a].kind == SideKind::periodic;
    shape.places[a] = places(std::int64_t{problem.mesh.cells[a]} << problem.mesh.refine, wraps, problem.equation);
  }
  return shape;
}

/// The coefficients of a file, in their order: the solutions first, then those of averages.
std::vector<Block> blocks_of(const Problem& problem, const Steps* steps, bool averaged) {
  std::vector<Block> blocks{{"coefficients", shape_of(problem, steps == nullptr ? 0 : steps->states)}};
  if (averaged) {
    blocks.push_back({"averages/mean", shape_of(problem, 0)});
    blocks.push_back({"averages/moments", shape_of(scalar_of(problem), flow_moments(problem.mesh.dim))});
  }
  return blocks;
}

/// \throws Failure unless times descend from state to state, by the lengths of steps.
void check(const Steps& steps) {
  for (int i = 0; i < steps.states; ++i) {
    const bool last = i + 1 == steps.states;
    const bool sound = std::isfinite(steps.times[i]) && std::isfinite(steps.lengths[i]) && steps.lengths[i] >= 0.0 &&
                       (last || (steps.times[i] > steps.times[i + 1] && steps.lengths[i] > 0.0));
    if (!sound) throw Failure("its times are not those of steps");
  }
  for (const double gradient : steps.gradients) {
    if (!std::isfinite(gradient)) throw Failure("`gradients` are not finite");
  }
}

/// \throws Failure unless it is a positive time
void check(const Averaged& averaged) {
  const bool sound = std::isfinite(averaged.start) && std::isfinite(averaged.length) && averaged.length > 0.0;
  if (!sound) throw Failure("its averages are over no time");
}

/// The coefficients as fields of the problem.
void take(const ByCell& by_cell, Problem& problem) {
  const auto field = [&](const std::vector<double>& values) -> std::optional<ScalarField> {
    if (values.empty()) return {};
    return cellwise(problem.mesh, extent_of(problem.mesh), values);
  };
  problem.form = by_cell.form;
  problem.varying_viscosity = field(by_cell.viscosity);
  problem.varying_mass = field(by_cell.mass);
  if (by_cell.points.empty()) return;
  // As of an array over the points of all cells, z fastest.
  const int m = problem.order + 2;
  const std::int64_t of_cell = viscosity_points_of_cell(problem);
  std::array<std::int64_t, 3> count = extent_of(problem.mesh);
  const std::array<std::int64_t, 3> extent = count;
  for (int a = 0; a < problem.mesh.dim; ++a) count[a] *= m;
  std::vector<double> values;
  values.reserve(by_cell.points.size());
  for (std::int64_t i = 0; i < count[0]; ++i) {
    for (std::int64_t j = 0; j < count[1]; ++j) {
      for (std::int64_t k = 0; k < count[2]; ++k) {
        const bool flat = problem.mesh.dim < 3;
        const std::int64_t cell = i / m + extent[0] * (j / m + extent[1] * (flat ? 0 : k / m));
        values.push_back(by_cell.points[cell * of_cell + i % m + m * (j % m + m * (flat ? 0 : k % m))]);
      }
    }
  }
  problem.varying_viscosity = scalar_field_of({problem.mesh, m}, std::move(values), "viscosity");
  problem.viscosity_points = ViscosityPlaces::gauss;
}

/// The coefficients of cells, nullptr where they are numbers of the problem. \throws Failure unless they may be such
std::shared_ptr<const CellCoefficients> coefficients_of(const std::optional<ByCell>& by_cell, const Problem& problem,
                                                        const Grid& grid) {
  if (!by_cell) return nullptr;
  const auto result = std::make_shared<CellCoefficients>();
  const int of_cell = viscosity_points_of_cell(problem);
  Unset<double> points;
  for (const Record cell : grid.layout().cells()) {
    const std::int64_t place = lattice_place(grid, cell);
    for (int q = 0; q < of_cell && !by_cell->points.empty(); ++q) {
      points.push_back(by_cell->points[place * of_cell + q]);
      if (!(points.back() > 0.0) || !std::isfinite(points.back())) {
        throw Failure("`viscosity_points` has one that is not positive");
      }
    }
    result->viscosity.push_back(by_cell->viscosity.empty() ? problem.viscosity : by_cell->viscosity[place]);
    result->reaction.push_back(by_cell->mass.empty() ? problem.mass : by_cell->mass[place]);
    if (!(result->viscosity.back() > 0.0) || !std::isfinite(result->viscosity.back()) ||
        !(result->reaction.back() >= 0.0) || !std::isfinite(result->reaction.back())) {
      throw Failure("`by_cell` has a viscosity that is not positive, or a mass term that is negative");
    }
  }
  if (!points.empty()) {
    result->points = std::make_shared<const ViscosityPoints>(grid.dim(), problem.order, std::move(points));
  }
  return result;
}

/// Those of a solution for a file; nullopt where they are numbers.
std::optional<ByCell> by_cell_of(const Solution& solution) {
  const Problem& problem = solution.problem();
  const auto numbers = solution.equation_coefficients().by_cell;
  if (numbers == nullptr) return {};
  ByCell by_cell{.form = form_of(problem)};
  if (viscosity_varies(problem)) by_cell.viscosity = on_lattice(solution.grid(), numbers->viscosity);
  if (mass_varies(problem)) by_cell.mass = on_lattice(solution.grid(), numbers->reaction);
  if (numbers->points != nullptr) {
    const int of_cell = numbers->points->in_cell();
    const auto extent = extent_of(problem.mesh);
    by_cell.points.assign(extent[0] * extent[1] * extent[2] * of_cell, 1.0);
    for (const Record cell : solution.grid().layout().owned_cells()) {
      std::copy_n(numbers->points->of_cell(cell), of_cell,
                  &by_cell.points[lattice_place(solution.grid(), cell) * of_cell]);
    }
  }
  return by_cell;
}

/// What a file says, but for the numbers of its blocks.
struct Said {
  Problem problem;
  std::optional<ByCell> by_cell;
  std::optional<Averaged> averaged;
  std::vector<Block> blocks;
};

/// With the steps of a checkpoint. \throws Failure unless the coefficients are of the size and at the place that the
/// envelope says
Said read_hdf5(const fs::path& file, const Envelope& envelope, Steps* steps) {
  const hdf5::Session session;
  const Handle handle(H5Fopen(file.c_str(), H5F_ACC_RDONLY, file_access()), H5Fclose, "it is not an HDF5 file");
  Reader reader(handle);
  Said said;
  describe(reader, said.problem);
  validate(said.problem.mesh);  // so that sizes are numbers; the rest once they are those of the file
  if (H5Lexists(handle, "by_cell", H5P_DEFAULT) > 0) {
    describe(reader, said.by_cell.emplace(), said.problem);
    take(*said.by_cell, said.problem);
  }
  if (steps != nullptr) {
    describe(reader, *steps);
    check(*steps);
    if (H5Lexists(handle, "averages", H5P_DEFAULT) > 0) {
      describe(reader, said.averaged.emplace());
      check(*said.averaged);
    }
  }

  said.blocks = blocks_of(said.problem, steps, said.averaged.has_value());
  for (Block& block : said.blocks) {
    const Handle dataset = open_dataset(handle, block.name, file_type<double>(), block.shape.sizes(), sizeof(double));
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) throw Failure(fmt::format("`{}` lies nowhere", block.name));
    block.offset = static_cast<std::int64_t>(offset);
  }
  if (said.blocks.front().shape.bytes_of_all() != envelope.data_bytes ||
      said.blocks.front().offset != envelope.data_offset) {
    throw Failure("`coefficients` lie elsewhere than its first bytes say");
  }
  check_memory(said.problem, said.blocks);
  validate_but_for_order(said.problem);
  return said;
}

/// "checkpoint" or "solution".
std::string kind_of(const Steps* steps) { return steps == nullptr ? "solution" : "checkpoint"; }

/// Solutions of one problem; with steps as a checkpoint, perhaps with averages, otherwise one.
void save(const std::vector<const Solution*>& solutions, Steps* steps, const Averages* averages, const fs::path& file) {
  const Problem& problem = solutions.front()->problem();
  std::vector<std::vector<const Solution*>> of_blocks{solutions};
  Averaged averaged;
  if (averages != nullptr) {
    averaged = {averages->start, averages->length};
    of_blocks.push_back({&averages->flow});
    auto& moments = of_blocks.emplace_back();
    for (const Solution& stress : averages->stresses) moments.push_back(&stress);
    moments.push_back(&averages->dissipation);
  }
  for (const auto& some : of_blocks) {
    for (const Solution* solution : some) require_whole(solution->grid(), "save");
  }
  if (!replaced_by(file)) {
    throw Error(fmt::format("cannot save to '{}': expected the name of a file, got a folder, a device or a pipe",
                            file.string()));
  }
  NewFile target(file);
  const std::optional<ByCell> by_cell = by_cell_of(*solutions.front());
  std::vector<Block> blocks = blocks_of(problem, steps, averages != nullptr);
  constexpr std::int64_t of_description = 1 << 16;
  const std::int64_t of_lists =
      std::ssize(problem.mesh.holes) * static_cast<std::int64_t>(sizeof(IndexBox)) +
      (problem.mesh.image == nullptr ? 0 : problem.mesh.image->size()) +
      (by_cell ? (std::ssize(by_cell->viscosity) + std::ssize(by_cell->mass) + std::ssize(by_cell->points)) *
                     static_cast<std::int64_t>(sizeof(double))
               : 0) +
      (steps == nullptr ? 0 : std::ssize(steps->note));
  Envelope envelope{.kind = kind_of(steps), .data_bytes = blocks.front().shape.bytes_of_all()};
  try {
    reserve(target.temporary(), bytes_of(blocks) + of_lists + of_description);
    write_hdf5(target.temporary(), envelope.kind, problem, by_cell, steps, averages == nullptr ? nullptr : &averaged,
               blocks);
    envelope.data_offset = blocks.front().offset;
    envelope.length = static_cast<std::int64_t>(fs::file_size(target.temporary()));
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      std::uint64_t checksum = 0;
      for (int i = 0; i < std::ssize(of_blocks[block]); ++i) {
        checksum +=
            write_coefficients(target.stream(), blocks[block].offset, blocks[block].shape, i, *of_blocks[block][i]);
      }
      if (block == 0) envelope.data_checksum = checksum;  // others belong to the rest
    }
    target.stream().flush();
    std::ifstream written(target.temporary(), std::ios::binary);
    envelope.checksum = checksum_of_rest(written, envelope);
  } catch (const Failure&) {
    target.fail("write");
  } catch (const std::ios_base::failure&) {
    target.fail("write");
  }
  target.stream().seekp(0) << text_of(envelope);
  target.sync();
  target.commit();
}

/// The same for reading.
std::vector<Solution> load(const fs::path& file, Steps* steps, std::optional<Averages>* averages) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    throw InputError(fmt::format("cannot read '{}': {}", file.string(),
                                 fs::exists(file, error) ? "it is not a file" : "there is no such file"));
  }
  const auto refuse = [&](const std::string& reason) -> InputError {
    return InputError(fmt::format("cannot read '{}': {}", file.string(), reason));
  };
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw refuse("no permission to read it");
  try {
    const auto [envelope, problem] =
        open_envelope(stream, static_cast<std::int64_t>(fs::file_size(file)), kind_of(steps));
    if (!problem.empty()) throw refuse(problem);
    const Said said = read_hdf5(file, envelope, steps);
    const Problem& solved = said.problem;
    const auto grid =
        std::make_shared<const Grid>(solved.mesh, solved.boundary, solved.equation == EquationKind::stokes);
    const auto coefficients_by_cell = coefficients_of(said.by_cell, solved, *grid);
    std::uint64_t checksum = 0;
    const auto read = [&](const Block& block, const Problem& of) {
      checksum = 0;
      std::vector<Solution> solutions;
      for (int i = 0; i < std::max(1, block.shape.states); ++i) {
        HostVector coefficients = zeros(std::int64_t{grid->layout().storage()} * block.shape.record);
        checksum += read_coefficients(stream, block.offset, block.shape, i, of, *grid, coefficients);
        solutions.emplace_back(without_data(of, file.string()), grid, std::move(coefficients),
                               std::optional<FlowIntegrals>(), coefficients_by_cell);
      }
      return solutions;
    };
    std::vector<Solution> solutions = read(said.blocks[0], solved);
    if (checksum != envelope.data_checksum) {
      throw Failure("its coefficients were changed: the checksum is another");
    }
    if (said.averaged) {
      Solution flow = read(said.blocks[1], solved).front();
      std::vector<Solution> moments = read(said.blocks[2], scalar_of(solved));
      Solution dissipation = std::move(moments.back());
      moments.pop_back();
      *averages = Averages{said.averaged->start, said.averaged->length, std::move(flow), std::move(moments),
                           std::move(dissipation)};
    }
    return solutions;
  } catch (const std::ios_base::failure& failure) {
    throw refuse(failure.what());
  } catch (const Failure& failure) {
    throw refuse(failure.what());
  } catch (const InvalidEntry& invalid) {
    throw refuse(invalid.what());
  } catch (const fs::filesystem_error& failure) {
    throw refuse(failure.code().message());
  }
}

}  // namespace

std::string solution_files_unavailable() { return {}; }

void Solution::save(const fs::path& file) const { solenoid::save({this}, nullptr, nullptr, file); }

Solution load_solution(const fs::path& file) { return load(file, nullptr, nullptr).front(); }

void Checkpoint::save(const fs::path& file) const {
  if (states.empty() || std::ssize(states) > most_states) {
    throw InputError(fmt::format("a checkpoint has 1 to {} states, not {}", most_states, states.size()));
  }
  Steps said{.number = steps, .states = static_cast<int>(states.size()), .note = note};
  for (const std::string& name : set) said.set += name + ' ';
  std::vector<const Solution*> flows;
  for (const State& state : states) {
    said.times.push_back(state.time);
    said.lengths.push_back(state.length);
    said.gradients.insert(said.gradients.end(), state.gradient.begin(), state.gradient.end());
    flows.push_back(&state.flow);
  }
  solenoid::save(flows, &said, averages ? &*averages : nullptr, file);
}

Checkpoint load_checkpoint(const fs::path& file) {
  Steps said;
  std::optional<Averages> averages;
  std::vector<Solution> flows = load(file, &said, &averages);
  Checkpoint checkpoint{.steps = said.number, .averages = std::move(averages), .note = std::move(said.note)};
  std::istringstream names(said.set);
  for (std::string name; names >> name;) checkpoint.set.push_back(name);
  for (int i = 0; i < said.states; ++i) {
    const double* const gradient = &said.gradients[3 * static_cast<std::size_t>(i)];
    checkpoint.states.push_back(
        {said.times[i], said.lengths[i], std::move(flows[i]), {gradient[0], gradient[1], gradient[2]}});
  }
  return checkpoint;
}

}  // namespace solenoid
