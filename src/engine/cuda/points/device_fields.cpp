#include "engine/cuda/points/device_fields.hpp"

#include <algorithm>
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
    const Metric& metric = grid.metric();
    if (shape.lower[a] != metric.plane(a, 0) || shape.upper[a] != metric.plane(a, cells)) return false;
  }
  return true;
}

/// What values at m Gauss points count at the points of the rule of `points`: [point][value].
std::vector<double> interpolation(int m, int points) {
  const GaussInterpolation polynomial(m);
  std::vector<double> factors;
  for (const double x : gauss(points).points) {
    const std::vector<double> here = polynomial.at(x);
    factors.insert(factors.end(), here.begin(), here.end());
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
      const auto component = result.component_of(engine, field, memory.points);
      if (!component) return {};
      result.fields_.push_back({{}, false, {}, {}, *component});
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

std::optional<ArrayField> DeviceFields::component_of(Engine& engine, const ScalarField& field, int points) {
  const PointArray& array = *field.array();
  auto uploaded = std::ranges::find(arrays_, &array, &UploadedArray::array);
  if (uploaded == arrays_.end()) {
    const bool is_there = array.on_device() != nullptr;
    const auto room = engine.bytes_available() / static_cast<std::int64_t>(sizeof(double));
    if (!is_there && std::ssize(array.values()) > room) return {};
    if (is_there) take_array(array.on_device(), field.label().c_str());
    arrays_.push_back({&array,
                       is_there ? Array<double>() : Array<double>(engine, array.values()),
                       {engine, interpolation(array.shape().points, points)}});
    uploaded = arrays_.end() - 1;
  }
  const PointArray::Shape& shape = array.shape();
  const double* const values = array.on_device() != nullptr ? array.on_device() : uploaded->values.data();
  return ArrayField{values + field.component(),
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
