#include "solver/mac/pairs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace solenoid {
namespace {

constexpr std::int32_t none = -1;

struct Neighbour {
  std::int32_t node;
  double value;  // how strongly it is coupled
};

/// Which nodes are neighbours; pairs of them become the nodes of another graph.
class Graph {
 public:
  explicit Graph(const HostMatrix& matrix) : neighbours_(matrix.rows) {
    for (const std::int32_t row : matrix.nodes) {
      matrix.for_row(row, [&](std::int32_t column, double value) {
        neighbours_[row].push_back({column, std::abs(value)});
      });
    }
  }

  /// [node]: its pair.
  [[nodiscard]] std::vector<std::int32_t> pairs() const {
    const auto count = static_cast<std::int32_t>(neighbours_.size());
    std::vector<double> largest(count, 0.0);
    for (std::int32_t i = 0; i < count; ++i) {
      for (const Neighbour& entry : neighbours_[i]) largest[i] = std::max(largest[i], entry.value);
    }
    std::vector<std::int32_t> pair(count, none);
    std::int32_t pairs = 0;
    const auto best = [&](std::int32_t i, bool paired) {
      Neighbour found{none, 0.0};
      for (const Neighbour& entry : neighbours_[i]) {
        const bool is_strong = entry.value >= strong_entry * std::min(largest[i], largest[entry.node]);
        if (is_strong && (pair[entry.node] != none) == paired && entry.value > found.value) found = entry;
      }
      return found.node;
    };
    // Those with few neighbours first: they have the least choice.
    std::vector<std::int32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t i, std::int32_t j) { return neighbours_[i].size() < neighbours_[j].size(); });
    for (const std::int32_t i : order) {
      if (pair[i] != none) continue;
      if (const std::int32_t other = best(i, false); other != none) pair[i] = pair[other] = pairs++;
    }
    for (const std::int32_t i : order) {
      if (pair[i] != none) continue;
      const std::int32_t other = best(i, true);
      pair[i] = other != none ? pair[other] : pairs++;
    }
    return pair;
  }
  [[nodiscard]] Graph merged(const std::vector<std::int32_t>& pair) const {
    Graph result;
    result.neighbours_.resize(pair.empty() ? 0 : *std::max_element(pair.begin(), pair.end()) + 1);
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      auto& mine = result.neighbours_[pair[i]];
      for (const Neighbour& entry : neighbours_[i]) {
        if (pair[entry.node] == pair[i]) continue;
        const auto known =
            std::find_if(mine.begin(), mine.end(), [&](const Neighbour& one) { return one.node == pair[entry.node]; });
        if (known != mine.end()) {
          known->value += entry.value;
        } else {
          mine.push_back({pair[entry.node], entry.value});
        }
      }
    }
    return result;
  }
  /// [node]: neighbours have different ones.
  [[nodiscard]] std::vector<int> colours() const {
    std::vector<int> colour(neighbours_.size(), -1);
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      std::uint64_t taken = 0;
      for (const Neighbour& entry : neighbours_[i]) {
        if (colour[entry.node] >= 0) taken |= std::uint64_t{1} << colour[entry.node];
      }
      colour[i] = std::countr_one(taken);
    }
    return colour;
  }

 private:
  Graph() = default;
  std::vector<std::vector<Neighbour>> neighbours_;
};

template <class T>
std::vector<T> downloaded(Engine& engine, const Vector<T>& vector, std::int64_t count) {
  std::vector<T> values(count);
  if (count > 0) engine.download(vector.data(), values.data(), count * sizeof(T));
  return values;
}

}  // namespace

HostMatrix::HostMatrix(Engine& engine, const SparseRows& of, const AssembledMatrix& matrix)
    : rows(of.count()),
      begin(downloaded(engine, matrix.begin, of.count() / SparseFormat::slice + 1)),
      column(downloaded(engine, matrix.column, begin.back())),
      value(downloaded(engine, matrix.value, begin.back())),
      diagonal(downloaded(engine, matrix.diagonal, of.count())) {
  const std::vector<NodePlace> place = downloaded(engine, of.place, of.count());
  for (std::int32_t row = 0; row < rows; ++row) {
    if (place[row].field >= 0) nodes.push_back(row);
  }
}

std::optional<Aggregation> aggregate_pairs(Engine& engine, const SparseRows& rows, const AssembledMatrix& matrix) {
  const HostMatrix host(engine, rows, matrix);
  Graph graph(host);
  std::vector<std::int32_t> aggregate(rows.count());
  std::iota(aggregate.begin(), aggregate.end(), 0);
  for (int pass = 0; pass < 2; ++pass) {
    const std::vector<std::int32_t> pair = graph.pairs();
    for (std::int32_t& mine : aggregate) mine = pair[mine];
    graph = graph.merged(pair);
  }
  const std::vector<int> colour = graph.colours();
  if (std::any_of(colour.begin(), colour.end(), [](int c) { return c >= SparseFormat::most_colours; })) return {};
  Aggregation result;
  result.lattice = {{2, 1, 1}, {}};
  std::vector<std::int32_t> first(colour.size(), none);  // [aggregate]
  std::vector<std::int32_t> root(rows.count(), none);
  std::vector<NodePlace> place(rows.count(), NodePlace{{0, 0, 0}, 0, 0});
  for (const std::int32_t row : host.nodes) {
    bool alone = true;
    host.for_row(row, [&](std::int32_t, double) { alone = false; });
    if (alone) continue;
    std::int32_t& mine = first[aggregate[row]];
    if (mine == none) {
      mine = row;
      place[row].at[0] = colour[aggregate[row]] % 2;
      place[row].layer = static_cast<std::int16_t>(colour[aggregate[row]] / 2);
      result.layers = std::max(result.layers, place[row].layer + 1);
    }
    root[row] = mine;
  }
  result.root = on_device(engine, root);
  result.place = on_device(engine, place);
  return result;
}

}  // namespace solenoid
