#include "engine/cuda/points/device_fields.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "element/basis.hpp"
#include "engine/cuda/foreign_array.hpp"

namespace solenoid::cuda {
namespace {

/// Of a thread block's memory: so much that three fit on a multiprocessor, or else one.
constexpr int sparing_numbers = (72 << 10) / sizeof(double);
constexpr int most_numbers = (224 << 10) / sizeof(double);

/// Whether it is given at points of the cells of this grid.
bool is_array_on(const Grid& grid, const ScalarField& field) {
  if (field.array() == nullptr || !field.array()->shape().in_cells) return false;
  const PointArray::Shape& shape = field.array()->shape();
  for (int a = 0; a < 3; ++a) {
    const int cells = a < grid.dim() ? grid.extent()[a] : 1;
    if (shape.count[a] != (a < grid.dim() ? cells * shape.points : 1)) return false;
    if (a >= grid.dim()) continue;
    const double upper = grid.metric().plane(a, cells - 1) + grid.metric().width(a, cells - 1);
    if (shape.lower[a] != grid.metric().plane(a, 0) || shape.upper[a] != upper) return false;
  }
  return true;
}

/// Factors of the values at m Gauss points of [0, 1], at the points of the rule of `points`, for the polynomial through
/// them: [point][value]. It is the sum of Legendre polynomials times its moments, which the m points take exactly.
std::vector<double> interpolation(int m, int points) {
  const Quadrature given = gauss(m);
  const Quadrature wanted = gauss(points);
  std::vector<double> factors;
  for (const double x : wanted.points) {
    const auto here = legendre(m - 1, x);
    for (int q = 0; q < m; ++q) {
      const auto there = legendre(m - 1, given.points[q]);
      factors.push_back(given.weights[q] * std::inner_product(here.begin(), here.end(), there.begin(), 0.0));
    }
  }
  return factors;
}

}  // namespace

DevicePlaces::DevicePlaces(Engine& engine, const Grid& grid)
    : positions_(engine, {&grid.position(0), static_cast<std::size_t>(grid.layout().cells().size())}) {
  for (int a = 0; a < grid.dim(); ++a) {
    std::vector<double> planes;
    std::vector<double> widths;
    for (int i = 0; i < grid.extent()[a]; ++i) {
      planes.push_back(grid.metric().plane(a, i));
      widths.push_back(grid.metric().width(a, i));
    }
    planes_[a] = {engine, planes};
    widths_[a] = {engine, widths};
  }
}

CellPlaces DevicePlaces::places() const {
  CellPlaces places{};
  places.position = reinterpret_cast<const std::int32_t(*)[3]>(positions_.data());
  for (int a = 0; a < 3; ++a) {
    places.plane[a] = planes_[a].data();
    places.width[a] = widths_[a].data();
  }
  return places;
}

std::optional<DeviceFields> DeviceFields::compile(Engine& engine, const Grid& grid, std::span<const ScalarField> fields,
                                                  PointMemory memory) {
  DeviceFields result;
  for (const ScalarField& field : fields) {
    if (is_array_on(grid, field)) {
      const PointArray& array = *field.array();
      const auto room = engine.bytes_available() / static_cast<std::int64_t>(sizeof(double));
      if (array.on_device() == nullptr && std::ssize(array.values()) > room) return {};
      result.fields_.push_back({{}, false, {}, {}, result.component_of(engine, field, memory.points)});
      continue;
    }
    const auto program = program_of(field);
    if (!program) return {};
    std::optional<PointProgram> compiled;
    for (const int most : {sparing_numbers, most_numbers}) {
      memory.most = most;
      if (!compiled) compiled = cuda::compile(*program, memory);
    }
    if (!compiled) return {};
    Array<PointInstruction> instructions(engine, compiled->instructions);
    Array<double> constants(engine, compiled->constants);
    result.fields_.push_back(
        {std::move(*compiled), field.is_zero(), std::move(instructions), std::move(constants), {}});
  }
  return result;
}

ArrayField DeviceFields::component_of(Engine& engine, const ScalarField& field, int points) {
  const PointArray& array = *field.array();
  auto uploaded = std::ranges::find(arrays_, &array, &UploadedArray::array);
  if (uploaded == arrays_.end()) {
    const bool is_there = array.on_device() != nullptr;
    if (is_there) take_array(array.on_device(), field.label().c_str());
    arrays_.push_back({&array,
                       is_there ? Array<double>() : Array<double>(engine, array.values()),
                       {engine, interpolation(array.shape().points, points)}});
    uploaded = arrays_.end() - 1;
  }
  const PointArray::Shape& shape = array.shape();
  const double* const values = array.on_device() != nullptr ? array.on_device() : uploaded->values.data();
  return {values + field.component(),
          uploaded->factors.data(),
          shape.points,
          shape.components,
          {shape.count[0], shape.count[1], shape.count[2]}};
}

PointField DeviceFields::operator[](std::size_t i) const {
  const auto& [program, zero, instructions, constants, array] = fields_[i];
  return {instructions.data(),
          constants.data(),
          program.partial,
          static_cast<int>(program.instructions.size()),
          static_cast<int>(program.constants.size()),
          program.result,
          zero,
          array};
}

int DeviceFields::numbers() const {
  int numbers = 0;
  for (const Uploaded& uploaded : fields_) numbers = std::max(numbers, uploaded.program.end);
  return numbers;
}

}  // namespace solenoid::cuda
