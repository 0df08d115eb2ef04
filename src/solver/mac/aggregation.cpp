#include "solver/mac/aggregation.hpp"

#include <algorithm>
#include <atomic>

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

/// Nodes sorted by blocks of a lattice, those of a block in their order.
struct Blocks {
  Unset<std::int64_t> begin;  // [block]; one more than there are blocks
  Unset<std::int32_t> node;
};

Blocks sort(std::span<const std::int32_t> block_of_node, std::int64_t count) {
  Blocks blocks;
  Unset<std::int32_t> next(count);
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    std::fill(next.begin() + range.begin, next.begin() + range.end, 0);
  });
  const Ranges nodes{std::ssize(block_of_node)};
  const auto place_in = [&](std::int32_t block) {
    return std::atomic_ref(next[block]).fetch_add(1, std::memory_order_relaxed);
  };
  parallel_ranges(nodes, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      if (block_of_node[i] >= 0) place_in(block_of_node[i]);
    }
  });
  blocks.begin.resize(count + 1);
  blocks.begin[0] = 0;
  std::partial_sum(next.begin(), next.end(), blocks.begin.begin() + 1,
                   [](std::int64_t sum, std::int32_t n) { return sum + n; });
  blocks.node.resize(blocks.begin.back());
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    std::fill(next.begin() + range.begin, next.begin() + range.end, 0);
  });
  parallel_ranges(nodes, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const std::int32_t block = block_of_node[i];
      if (block >= 0) blocks.node[blocks.begin[block] + place_in(block)] = static_cast<std::int32_t>(i);
    }
  });
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      std::sort(blocks.node.begin() + blocks.begin[b], blocks.node.begin() + blocks.begin[b + 1]);
    }
  });
  return blocks;
}

/// Numbers the nodes of a block by the connected set that they are in; returns how many sets there are. `set` has room
/// for them; `joined(i, j)`: whether there is an entry between nodes i and j of the block.
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

RowOrder::RowOrder(const NodeLattice& lattice, std::span<const NodePlace> nodes) {
  // In a ring of an odd number of places the last one has neighbours of both colours.
  std::array<bool, 3> odd_ring{};
  colours = 2;
  for (int a = 0; a < 3; ++a) {
    odd_ring[a] = lattice.periodic[a] && lattice.extent[a] % 2 == 1 && lattice.extent[a] > 1;
    if (odd_ring[a]) colours *= 2;
  }
  const auto colour_of = [&](const NodePlace& node) {
    int colour = (node.at[0] + node.at[1] + node.at[2]) % 2;
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
  row.resize(nodes.size());
  parallel_ranges(ranges, [&](CellRange range, std::int64_t r) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      row[i] = static_cast<std::int32_t>(next[r][colour_of(nodes[i])]++);
    }
  });
}

Coarsened coarsen(const SparseRows& fine, std::span<const NodePlace> nodes, const NodeLattice& lattice, Merge merge) {
  Coarsened result;
  result.lattice = lattice.coarse();
  const auto& extent = result.lattice.extent;
  const auto block = lattice.blocks();
  const std::int64_t volume = std::int64_t{extent[0]} * extent[1] * extent[2];
  const RowOrder& order = fine.order;
  const std::int64_t count = std::ssize(nodes);

  const std::int32_t fields = nodes.empty() ? 1 : nodes.back().field + 1;  // nodes are sorted by them
  const auto row_of = [&](std::int32_t node) { return order.row[node]; };
  const auto degree = [&](std::int32_t row) { return fine.begin[row + 1] - fine.begin[row]; };
  Unset<std::int32_t> block_of_node(count);
  Unset<std::int32_t> node_of_row(order.rows());
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    for (auto i = static_cast<std::int32_t>(range.begin); i < range.end; ++i) {
      const auto& [at, field] = nodes[i];
      node_of_row[row_of(i)] = i;
      // Relaxation solves for a node without neighbours.
      block_of_node[i] =
          degree(row_of(i)) == 0
              ? -1
              : static_cast<std::int32_t>(field * volume + block[0][at[0]] +
                                          extent[0] * (block[1][at[1]] + std::int64_t{extent[1]} * block[2][at[2]]));
    }
  });
  Blocks blocks = sort(block_of_node, fields * volume);

  // Aggregates, numbered block by block: their members are put side by side.
  const Ranges block_ranges{std::ssize(blocks.begin) - 1};
  std::vector<std::int64_t> first(block_ranges.number() + 1, 0);
  Unset<std::int32_t> aggregate(count);  // [node], inside its block first
  parallel_ranges(block_ranges, [&](CellRange range, std::int64_t r) {
    std::vector<int> set;
    std::vector<std::int32_t> sorted;
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      const auto begin = blocks.node.begin() + blocks.begin[b];
      const auto size = static_cast<int>(blocks.begin[b + 1] - blocks.begin[b]);
      if (size == 0) continue;
      if (merge == Merge::block) {
        for (int i = 0; i < size; ++i) aggregate[begin[i]] = 0;
        ++first[r + 1];
        continue;
      }
      const int sets = number_connected(size, set, [&](int here, const auto& visit) {
        const std::int32_t row = row_of(begin[here]);
        for (std::int64_t e = fine.begin[row]; e < fine.begin[row + 1]; ++e) {
          const std::int32_t other = node_of_row[fine.column[e]];
          if (block_of_node[other] == b) visit(static_cast<int>(std::lower_bound(begin, begin + size, other) - begin));
        }
      });
      for (int i = 0; i < size; ++i) aggregate[begin[i]] = set[i];
      sorted.assign(begin, begin + size);
      std::stable_sort(sorted.begin(), sorted.end(),
                       [&](std::int32_t i, std::int32_t j) { return aggregate[i] < aggregate[j]; });
      std::copy(sorted.begin(), sorted.end(), begin);
      first[r + 1] += sets;
    }
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  const std::int64_t coarse_count = first.back();
  result.nodes.resize(coarse_count);
  Unset<std::int64_t> members_begin(coarse_count + 1);
  parallel_ranges(block_ranges, [&](CellRange range, std::int64_t r) {
    std::int64_t next = first[r];
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      std::int32_t last = -1;
      for (std::int64_t m = blocks.begin[b]; m < blocks.begin[b + 1]; ++m) {
        const std::int32_t node = blocks.node[m];
        if (aggregate[node] != last) {
          last = aggregate[node];
          const auto place = static_cast<std::int32_t>(b % volume);
          result.nodes[next] = {{place % extent[0], place / extent[0] % extent[1], place / extent[0] / extent[1]},
                                static_cast<std::int32_t>(b / volume)};
          members_begin[next++] = m;
        }
        aggregate[node] = static_cast<std::int32_t>(next - 1);
      }
    }
  });
  members_begin[coarse_count] = std::ssize(blocks.node);

  RowOrder coarse_order(result.lattice, result.nodes);
  const std::int32_t none = coarse_order.rows();
  result.parent.resize(order.rows() + SparseFormat::slice);
  parallel_ranges({std::ssize(result.parent)}, [&](CellRange range, std::int64_t) {
    std::fill(result.parent.begin() + range.begin, result.parent.begin() + range.end, none);
  });
  parallel_ranges({count}, [&](CellRange range, std::int64_t) {
    for (auto i = static_cast<std::int32_t>(range.begin); i < range.end; ++i) {
      if (block_of_node[i] >= 0) result.parent[row_of(i)] = coarse_order.row[aggregate[i]];
    }
  });
  result.matrix = make_rows(std::move(coarse_order), [&](std::int64_t node, RowBuilder& row) {
    double size = 0.0;
    for (std::int64_t m = members_begin[node]; m < members_begin[node + 1]; ++m) {
      const std::int32_t i = row_of(blocks.node[m]);
      row.add_diagonal(fine.diagonal[i]);
      size += fine.diagonal[i];
      for (std::int64_t e = fine.begin[i]; e < fine.begin[i + 1]; ++e) {
        row.add(result.parent[fine.column[e]], fine.value[e]);
      }
    }
    // The sum of a part that nothing holds is zero but for rounding.
    constexpr double rounding = 1e-9;
    if (row.entries().empty() && row.diagonal() <= rounding * size) row.clear_diagonal();
  });

  const RowOrder& coarse = result.matrix.order;
  result.child_begin.assign(coarse.rows() + 1, 0);
  const std::int32_t last_colour = order.colour_begin[order.colours - 1];
  const auto for_children = [&](std::int64_t node, const auto& visit) {
    for (std::int64_t m = members_begin[node]; m < members_begin[node + 1]; ++m) {
      const std::int32_t row = row_of(blocks.node[m]);
      if (row < last_colour) visit(row);
    }
  };
  const auto for_nodes = [&](const auto& visit) {
    parallel_ranges({coarse_count}, [&](CellRange range, std::int64_t) {
      for (std::int64_t node = range.begin; node < range.end; ++node) visit(node);
    });
  };
  for_nodes([&](std::int64_t node) {
    for_children(node, [&](std::int32_t) { ++result.child_begin[coarse.row[node] + 1]; });
  });
  std::partial_sum(result.child_begin.begin(), result.child_begin.end(), result.child_begin.begin());
  result.child.resize(result.child_begin.back());
  for_nodes([&](std::int64_t node) {
    std::int32_t at = result.child_begin[coarse.row[node]];
    for_children(node, [&](std::int32_t row) { result.child[at++] = row; });
  });
  return result;
}

}  // namespace solenoid
