#include "solver/mac/aggregation.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

namespace solenoid {
namespace {

/// Blocks that a direction of so many places is cut into.
int blocks_of(int places, bool periodic) {
  if (!periodic) return (places + 1) / 2;
  const int pairs = places / 2;
  return std::max(1, pairs > 1 ? pairs + pairs % 2 : pairs);
}

std::int32_t padded(std::int64_t rows) {
  constexpr int slice = SparseFormat::slice;
  return static_cast<std::int32_t>((rows + slice - 1) / slice * slice);
}

/// Nodes sorted by groups, those of a group in their order.
struct Groups {
  Unset<std::int64_t> begin;  // [group]; one more than there are groups
  Unset<std::int32_t> node;
};

/// Without those of group -1.
Groups sort(std::span<const std::int32_t> group_of_node, std::int64_t count) {
  Groups groups;
  Unset<std::int32_t> next;
  fill(next, count, 0);
  const Ranges nodes{std::ssize(group_of_node)};
  const auto place_in = [&](std::int32_t group) {
    return std::atomic_ref(next[group]).fetch_add(1, std::memory_order_relaxed);
  };
  parallel_ranges(nodes, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      if (group_of_node[i] >= 0) place_in(group_of_node[i]);
    }
  });
  groups.begin.resize(count + 1);
  groups.begin[0] = 0;
  std::partial_sum(next.begin(), next.end(), groups.begin.begin() + 1,
                   [](std::int64_t sum, std::int32_t n) { return sum + n; });
  groups.node.resize(groups.begin.back());
  fill(next, count, 0);
  parallel_ranges(nodes, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const std::int32_t group = group_of_node[i];
      if (group >= 0) groups.node[groups.begin[group] + place_in(group)] = static_cast<std::int32_t>(i);
    }
  });
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    for (std::int64_t g = range.begin; g < range.end; ++g) {
      std::sort(groups.node.begin() + groups.begin[g], groups.node.begin() + groups.begin[g + 1]);
    }
  });
  return groups;
}

/// An entry is strong if it is that large a part of the largest one in its row or in its column: where two pores meet
/// in a throat that both can do without, it is not, and constants on both together are no good correction.
constexpr double strong = 0.25;

/// Layers that there may be in a block; sets that would need another one are joined with a neighbour.
constexpr int most_layers = SparseFormat::most_colours / 2;

/// Numbers the nodes of a block by the connected set that they are in, so that neighbours(node, visit) visits nodes of
/// the same set; returns how many sets there are.
template <class Neighbours>
int number_connected(int nodes, std::vector<int>& set, const Neighbours& neighbours) {
  set.assign(nodes, -1);
  int sets = 0;
  std::vector<int> front;
  for (int first = 0; first < nodes; ++first) {
    if (set[first] >= 0) continue;
    set[first] = sets;
    front.assign(1, first);
    while (!front.empty()) {
      const int here = front.back();
      front.pop_back();
      neighbours(here, [&](int other) {
        if (set[other] >= 0) return;
        set[other] = sets;
        front.push_back(other);
      });
    }
    ++sets;
  }
  return sets;
}

/// Relaxation solves for a node without neighbours.
bool alone(const SparseRows& rows, std::int64_t node) {
  const std::int32_t row = rows.order.row[node];
  return rows.begin[row] == rows.begin[row + 1];
}

/// [row]: the size of its largest entry besides the diagonal.
Unset<double> largest_entries(const SparseRows& rows) {
  Unset<double> largest(rows.order.rows());
  parallel_ranges({std::ssize(largest)}, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      largest[i] = 0.0;
      for (std::int64_t e = rows.begin[i]; e < rows.begin[i + 1]; ++e) {
        largest[i] = std::max(largest[i], std::abs(rows.value[e]));
      }
    }
  });
  return largest;
}

/// A small matrix as a graph: nodes with the sizes of their entries.
class Graph {
 public:
  explicit Graph(const SparseRows& rows) {
    const RowOrder& order = rows.order;
    std::vector<std::int32_t> node_of_row(order.rows(), -1);
    for (std::int32_t i = 0; i < std::ssize(order.row); ++i) node_of_row[order.row[i]] = i;
    neighbours_.resize(order.row.size());
    for (std::size_t i = 0; i < order.row.size(); ++i) {
      for (std::int64_t e = rows.begin[order.row[i]]; e < rows.begin[order.row[i] + 1]; ++e) {
        neighbours_[i].push_back({node_of_row[rows.column[e]], std::abs(rows.value[e])});
      }
    }
  }

  /// [node]: its pair.
  [[nodiscard]] std::vector<std::int32_t> pairs() const {
    constexpr std::int32_t none = -1;
    const auto count = static_cast<std::int32_t>(neighbours_.size());
    std::vector<double> largest(count, 0.0);
    for (std::int32_t i = 0; i < count; ++i) {
      for (const SparseEntry& entry : neighbours_[i]) largest[i] = std::max(largest[i], entry.value);
    }
    std::vector<std::int32_t> pair(count, none);
    std::int32_t pairs = 0;
    const auto best = [&](std::int32_t i, bool paired) {
      SparseEntry found{none, 0.0};
      for (const SparseEntry& entry : neighbours_[i]) {
        const bool is_strong = entry.value >= strong * std::min(largest[i], largest[entry.column]);
        if (is_strong && (pair[entry.column] != none) == paired && entry.value > found.value) found = entry;
      }
      return found.column;
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
      for (const SparseEntry& entry : neighbours_[i]) {
        if (pair[entry.column] == pair[i]) continue;
        const auto known = std::find_if(mine.begin(), mine.end(),
                                        [&](const SparseEntry& one) { return one.column == pair[entry.column]; });
        if (known != mine.end()) {
          known->value += entry.value;
        } else {
          mine.push_back({pair[entry.column], entry.value});
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
      for (const SparseEntry& entry : neighbours_[i]) {
        if (colour[entry.column] >= 0) taken |= std::uint64_t{1} << colour[entry.column];
      }
      colour[i] = std::countr_one(taken);
    }
    return colour;
  }

 private:
  Graph() = default;
  std::vector<std::vector<SparseEntry>> neighbours_;
};

}  // namespace

std::array<std::vector<std::int32_t>, 3> NodeLattice::blocks() const {
  std::array<std::vector<std::int32_t>, 3> block;
  for (int a = 0; a < 3; ++a) {
    const std::int64_t count = blocks_of(extent[a], periodic[a]);
    block[a].resize(extent[a]);
    for (int i = 0; i < extent[a]; ++i) {
      block[a][i] = static_cast<std::int32_t>(periodic[a] ? i * count / extent[a] : i / 2);
    }
  }
  return block;
}

NodeLattice NodeLattice::coarse() const {
  NodeLattice lattice = *this;
  for (int a = 0; a < 3; ++a) lattice.extent[a] = blocks_of(extent[a], periodic[a]);
  return lattice;
}

RowOrder::RowOrder(const NodeLattice& lattice, std::span<const NodePlace> nodes, int layers) {
  // In a ring of an odd number of places the last one has neighbours of both colours.
  std::array<bool, 3> odd_ring{};
  colours = 2;
  for (int a = 0; a < 3; ++a) {
    odd_ring[a] = lattice.periodic[a] && lattice.extent[a] % 2 == 1 && lattice.extent[a] > 1;
    if (odd_ring[a]) colours *= 2;
  }
  const int of_layer = colours;
  colours *= layers;
  const auto colour_of = [&](const NodePlace& node) {
    int colour = of_layer * node.layer + (node.at[0] + node.at[1] + node.at[2]) % 2;
    int bit = 2;
    for (int a = 0; a < 3; ++a) {
      if (!odd_ring[a]) continue;
      if (node.at[a] == lattice.extent[a] - 1) colour += bit;
      bit *= 2;
    }
    return colour;
  };
  using Counts = std::array<std::int64_t, SparseFormat::most_colours>;
  const Ranges ranges{std::ssize(nodes)};
  std::vector<Counts> next(ranges.number(), Counts{});
  parallel_ranges(ranges, [&](CellRange range, std::int64_t r) {
    for (std::int64_t i = range.begin; i < range.end; ++i) ++next[r][colour_of(nodes[i])];
  });
  std::int64_t total = 0;
  for (int c = 0; c < colours; ++c) {
    colour_begin[c] = static_cast<std::int32_t>(total);
    for (Counts& counts : next) total += std::exchange(counts[c], total);
    total = padded(total);
  }
  colour_begin[colours] = static_cast<std::int32_t>(total);
  while (colours > 1 && colour_begin[colours - 1] == colour_begin[colours]) --colours;
  row.resize(nodes.size());
  parallel_ranges(ranges, [&](CellRange range, std::int64_t r) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      row[i] = static_cast<std::int32_t>(next[r][colour_of(nodes[i])]++);
    }
  });
}

Aggregation aggregate_blocks(const SparseRows& rows, std::span<const NodePlace> nodes, const NodeLattice& lattice,
                             Merge merge) {
  Aggregation result;
  result.lattice = lattice.coarse();
  const auto& extent = result.lattice.extent;
  const auto block = lattice.blocks();
  const std::int64_t volume = std::int64_t{extent[0]} * extent[1] * extent[2];
  const RowOrder& order = rows.order;
  const std::int64_t count = std::ssize(nodes);
  const std::int32_t fields = nodes.empty() ? 1 : nodes.back().field + 1;  // nodes are sorted by them
  Unset<std::int32_t> block_of_node(count);
  Unset<std::int32_t> node_of_row(order.rows());
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    for (auto i = static_cast<std::int32_t>(range.begin); i < range.end; ++i) {
      const auto& at = nodes[i].at;
      node_of_row[order.row[i]] = i;
      block_of_node[i] =
          alone(rows, i)
              ? -1
              : static_cast<std::int32_t>(nodes[i].field * volume + block[0][at[0]] +
                                          extent[0] * (block[1][at[1]] + std::int64_t{extent[1]} * block[2][at[2]]));
    }
  });
  const Groups blocks = sort(block_of_node, fields * volume);
  const Unset<double> largest = merge == Merge::connected ? largest_entries(rows) : Unset<double>();

  // The parts of each block.
  const Ranges ranges{std::ssize(blocks.begin) - 1};
  std::vector<std::int64_t> first(ranges.number() + 1, 0);
  result.of_node.resize(count);  // inside its block first
  Unset<std::int8_t> layer(merge == Merge::connected ? count : 0);
  std::atomic<int> layers{1};
  parallel_ranges(ranges, [&](CellRange range, std::int64_t r) {
    std::vector<int> set;
    std::vector<int> layer_of_set;
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      const auto begin = blocks.node.begin() + blocks.begin[b];
      const auto size = static_cast<int>(blocks.begin[b + 1] - blocks.begin[b]);
      if (size == 0) continue;
      if (merge == Merge::block) {
        for (int i = 0; i < size; ++i) result.of_node[begin[i]] = 0;
        ++first[r + 1];
        continue;
      }
      // Neighbours in the block, strong ones or all.
      const auto for_neighbours = [&](int here, bool all, const auto& visit) {
        const std::int32_t row = order.row[begin[here]];
        for (std::int64_t e = rows.begin[row]; e < rows.begin[row + 1]; ++e) {
          const std::int32_t column = rows.column[e];
          const std::int32_t other = node_of_row[column];
          if (block_of_node[other] != b) continue;
          if (!all && std::abs(rows.value[e]) < strong * std::min(largest[row], largest[column])) continue;
          visit(static_cast<int>(std::lower_bound(begin, begin + size, other) - begin));
        }
      };
      int sets = number_connected(size, set, [&](int here, const auto& visit) { for_neighbours(here, false, visit); });
      // Sets that weak entries connect are of different layers.
      layer_of_set.assign(sets, 0);
      for (int s = 1; s < sets; ++s) {
        std::uint32_t taken = 0;
        for (int i = 0; i < size; ++i) {
          if (set[i] != s) continue;
          for_neighbours(i, true, [&](int other) {
            if (set[other] < s) taken |= std::uint32_t{1} << layer_of_set[set[other]];
          });
        }
        layer_of_set[s] = std::countr_one(taken);
      }
      if (*std::max_element(layer_of_set.begin(), layer_of_set.end()) >= most_layers) {
        sets = number_connected(size, set, [&](int here, const auto& visit) { for_neighbours(here, true, visit); });
        layer_of_set.assign(sets, 0);
      }
      for (int i = 0; i < size; ++i) {
        result.of_node[begin[i]] = set[i];
        layer[begin[i]] = static_cast<std::int8_t>(layer_of_set[set[i]]);
      }
      first[r + 1] += sets;
      const int here = *std::max_element(layer_of_set.begin(), layer_of_set.end()) + 1;
      for (int known = layers; known < here && !layers.compare_exchange_weak(known, here);) {
      }
    }
  });
  result.layers = layers;
  std::partial_sum(first.begin(), first.end(), first.begin());
  result.places.resize(first.back());
  parallel_ranges(ranges, [&](CellRange range, std::int64_t r) {
    std::int64_t next = first[r];
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      const auto place = static_cast<std::int32_t>(b % volume);
      std::int32_t sets = 0;
      for (std::int64_t m = blocks.begin[b]; m < blocks.begin[b + 1]; ++m) {
        const std::int32_t node = blocks.node[m];
        std::int32_t& mine = result.of_node[node];
        sets = std::max(sets, mine + 1);
        mine += static_cast<std::int32_t>(next);
        result.places[mine] = {{place % extent[0], place / extent[0] % extent[1], place / extent[0] / extent[1]},
                               static_cast<std::int32_t>(b / volume),
                               merge == Merge::connected ? layer[node] : 0};
      }
      next += sets;
    }
  });
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      if (block_of_node[i] < 0) result.of_node[i] = -1;
    }
  });
  return result;
}

Aggregation aggregate_pairs(const SparseRows& rows) {
  Graph graph(rows);
  const std::int64_t count = std::ssize(rows.order.row);
  Aggregation result;
  result.of_node.resize(count);
  std::iota(result.of_node.begin(), result.of_node.end(), 0);
  for (int pass = 0; pass < 2; ++pass) {
    const std::vector<std::int32_t> pair = graph.pairs();
    for (std::int32_t& mine : result.of_node) mine = pair[mine];
    graph = graph.merged(pair);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (alone(rows, i)) result.of_node[i] = -1;
  }
  const std::vector<int> colour = graph.colours();
  if (std::any_of(colour.begin(), colour.end(), [](int c) { return c >= SparseFormat::most_colours; })) return {};
  result.lattice = {{2, 1, 1}, {}};
  result.places.resize(colour.size());
  for (std::size_t i = 0; i < colour.size(); ++i) {
    result.places[i] = {{colour[i] % 2, 0, 0}, 0, colour[i] / 2};
    result.layers = std::max(result.layers, colour[i] / 2 + 1);
  }
  return result;
}

Coarsened coarsen(const SparseRows& fine, const Aggregation& aggregation) {
  const RowOrder& order = fine.order;
  const auto coarse_count = std::ssize(aggregation.places);
  const Groups members = sort(aggregation.of_node, coarse_count);
  RowOrder coarse(aggregation.lattice, aggregation.places, aggregation.layers);
  const std::int32_t none = coarse.rows();

  Coarsened result;
  fill(result.parent, order.rows() + SparseFormat::slice, none);
  parallel_ranges({std::ssize(order.row)}, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      if (aggregation.of_node[i] >= 0) result.parent[order.row[i]] = coarse.row[aggregation.of_node[i]];
    }
  });
  const auto for_members = [&](std::int64_t node, const auto& visit) {
    for (std::int64_t m = members.begin[node]; m < members.begin[node + 1]; ++m) visit(order.row[members.node[m]]);
  };

  const std::int32_t last_colour = order.colour_begin[order.colours - 1];
  const auto for_nodes = [&](const auto& visit) {
    parallel_ranges({coarse_count}, [&](CellRange range, std::int64_t) {
      for (std::int64_t node = range.begin; node < range.end; ++node) visit(node);
    });
  };
  result.child_begin.assign(coarse.rows() + 1, 0);
  for_nodes([&](std::int64_t node) {
    for_members(node, [&](std::int32_t row) { result.child_begin[coarse.row[node] + 1] += row < last_colour ? 1 : 0; });
  });
  std::partial_sum(result.child_begin.begin(), result.child_begin.end(), result.child_begin.begin());
  result.child.resize(result.child_begin.back());
  for_nodes([&](std::int64_t node) {
    std::int32_t at = result.child_begin[coarse.row[node]];
    for_members(node, [&](std::int32_t row) {
      if (row < last_colour) result.child[at++] = row;
    });
  });

  result.matrix = make_rows(std::move(coarse), [&](std::int64_t node, RowBuilder& row) {
    double size = 0.0;
    for_members(node, [&](std::int32_t i) {
      row.add_diagonal(fine.diagonal[i]);
      size += fine.diagonal[i];
      for (std::int64_t e = fine.begin[i]; e < fine.begin[i + 1]; ++e) {
        row.add(result.parent[fine.column[e]], fine.value[e]);
      }
    });
    // The sum of a part that nothing holds is zero but for rounding.
    constexpr double rounding = 1e-9;
    if (row.entries().empty() && row.diagonal() <= rounding * size) row.clear_diagonal();
  });
  return result;
}

}  // namespace solenoid
