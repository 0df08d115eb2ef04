#include "engine/cuda/smoother/device_inverses.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/cuda/device_level.hpp"
#include "engine/cuda/smoother/schur_complement.hpp"

namespace solenoid::cuda {
namespace {

/// Tables that blocks refer to, one after the other, for the device.
class Numbers {
 public:
  /// Where they begin.
  template <class Values>
  std::size_t add(const Values& values) {
    const std::size_t at = values_.size();
    values_.insert(values_.end(), values.data(), values.data() + values.size());
    return at;
  }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

/// A block, whose tables are given by where they begin.
struct Block {
  SchurComplement of;
  int size;
  std::array<std::size_t, 3> divergence;
  std::array<std::size_t, 3> inverse_lambda;
  std::size_t null;
  bool has_null;

  /// Numbers that making its inverse takes.
  [[nodiscard]] std::int64_t work() const {
    return std::int64_t{size} * size + Exchanged::work(size) + Exchanged::tiles(size);
  }
};

/// The largest first.
std::vector<Block> blocks_of(const std::vector<MissingInverses>& missing, Numbers& numbers) {
  std::vector<Block> blocks;
  for (const auto& [solver, places] : missing) {
    Block block{};
    block.of.dim = solver.dim();
    for (int a = 0; a < solver.dim(); ++a) {
      const Matrix transposed = solver.direction(a).divergence.transpose();  // its columns are the rows of C
      block.of.functions[a] = static_cast<int>(transposed.rows());
      block.of.modes = static_cast<int>(transposed.cols());
      block.divergence[a] = numbers.add(transposed);
      block.inverse_lambda[a] = numbers.add(solver.inverse_lambda(a));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const SchurBlock& schur = solver.blocks()[i];
      block.size = schur.size();
      std::copy(schur.start.begin(), schur.start.end(), block.of.start);
      std::copy(schur.length.begin(), schur.length.end(), block.of.length);
      const Eigen::VectorXd null = solver.constant_in(schur);
      block.has_null = null.size() > 0;
      block.null = numbers.add(null);
      block.of.place = static_cast<std::int64_t>(places[i]);
      blocks.push_back(block);
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.size > b.size; });
  return blocks;
}

/// Where groups of blocks end that are made together.
std::vector<std::size_t> groups_of(const std::vector<Block>& blocks) {
  constexpr std::int64_t most = std::int64_t{64} << 20;  // bytes
  std::vector<std::size_t> ends;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::int64_t bytes = blocks[i].work() * static_cast<std::int64_t>(sizeof(double));
    if (sum > 0 && sum + bytes > most) {
      ends.push_back(i);
      sum = 0;
    }
    sum += bytes;
  }
  if (!blocks.empty()) ends.push_back(blocks.size());
  return ends;
}

}  // namespace

template <class T>
void make_inverses(Engine& engine, const std::vector<MissingInverses>& missing, InverseForm form, T* tables,
                   Stream stream) {
  Numbers numbers;
  const std::vector<Block> blocks = blocks_of(missing, numbers);
  const std::vector<std::size_t> ends = groups_of(blocks);
  if (blocks.empty()) return;
  std::int64_t most = 0;
  for (std::size_t group = 0, i = 0; group < ends.size(); ++group) {
    std::int64_t sum = 0;
    for (; i < ends[group]; ++i) sum += blocks[i].work();
    most = std::max(most, sum);
  }
  const Array<double> values(engine, numbers.values());
  Vector<double> work(engine, most);
  Vector<double> shifts(engine, std::ssize(blocks));

  std::vector<SchurComplement> complements;
  std::vector<Exchanged> matrices;
  for (std::size_t group = 0, i = 0; group < ends.size(); ++group) {
    double* free = work.data();
    for (; i < ends[group]; ++i) {
      const Block& block = blocks[i];
      const int size = block.size;
      SchurComplement& of = complements.emplace_back(block.of);
      for (int a = 0; a < of.dim; ++a) {
        of.divergence[a] = values.data() + block.divergence[a];
        of.inverse_lambda[a] = values.data() + block.inverse_lambda[a];
      }
      of.null = block.has_null ? values.data() + block.null : nullptr;
      of.shift = shifts.data() + i;
      double* const matrix = free;
      double* const of_exchange = matrix + std::int64_t{size} * size;
      double* const filled = of_exchange + Exchanged::work(size);
      matrices.push_back(Exchanged::with(size, matrix, of_exchange, reinterpret_cast<int*>(filled)));
      free = filled + Exchanged::tiles(size);
    }
  }
  const Array<SchurComplement> complements_there(engine, complements);
  const Array<Exchanged> matrices_there(engine, matrices);

  std::size_t first = 0;
  for (const std::size_t end : ends) {
    const SchurComplement* const of = complements_there.data() + first;
    const Exchanged* const to = matrices_there.data() + first;
    const int largest = blocks[first].size;
    const auto number = static_cast<int>(end - first);
    assemble_schur(of, to, number, largest, stream);
    int left = number;  // that have unknowns yet
    for (int begin = 0; begin < largest; begin += dense_tile) {
      while (blocks[first + left - 1].size <= begin) --left;
      exchange(to, left, largest, begin, begin + dense_tile, stream);
    }
    write_inverses(of, to, number, largest, form, tables, stream);
    first = end;
  }
  engine.synchronise();
}
template void make_inverses(Engine&, const std::vector<MissingInverses>&, InverseForm, float*, Stream);
template void make_inverses(Engine&, const std::vector<MissingInverses>&, InverseForm, double*, Stream);

}  // namespace solenoid::cuda
