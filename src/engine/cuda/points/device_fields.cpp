#include "engine/cuda/points/device_fields.hpp"

#include <algorithm>
#include <utility>

namespace solenoid::cuda {
namespace {

/// Of a thread block's memory: so much that three fit on a multiprocessor, or else one.
constexpr int sparing_numbers = (72 << 10) / sizeof(double);
constexpr int most_numbers = (224 << 10) / sizeof(double);

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

std::optional<DeviceFields> DeviceFields::compile(Engine& engine, std::span<const ScalarField> fields,
                                                  PointMemory memory) {
  DeviceFields result;
  for (const ScalarField& field : fields) {
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
    result.programs_.push_back({std::move(*compiled), field.is_zero(), std::move(instructions), std::move(constants)});
  }
  return result;
}

PointField DeviceFields::operator[](std::size_t i) const {
  const auto& [program, zero, instructions, constants] = programs_[i];
  return {instructions.data(),
          constants.data(),
          program.partial,
          static_cast<int>(program.instructions.size()),
          static_cast<int>(program.constants.size()),
          program.result,
          zero};
}

int DeviceFields::numbers() const {
  int numbers = 0;
  for (const Uploaded& uploaded : programs_) numbers = std::max(numbers, uploaded.program.end);
  return numbers;
}

}  // namespace solenoid::cuda
