#include "mesh/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using Weight = std::function<std::int64_t(const std::array<int, 3>&)>;

template <class Visit>
void for_cells(const LatticeBox& box, const Visit& visit) {
  for (int z = box.lower[2]; z < box.upper[2]; ++z) {
    for (int y = box.lower[1]; y < box.upper[1]; ++y) {
      for (int x = box.lower[0]; x < box.upper[0]; ++x) visit(std::array{x, y, z});
    }
  }
}

/// A box with ranks first to last - 1, one of them for each seed at least.
class Bisection {
 public:
  Bisection(int dim, const Weight& weight, std::vector<LatticeBox>& boxes)
      : dim_(dim), weight_(weight), boxes_(boxes) {}

  /// False if there are too few seeds.
  [[nodiscard]] bool cut(const LatticeBox& box, int first, int last) {
    if (last - first == 1) {
      boxes_[first] = box;
      return true;
    }
    const int ranks = (last - first) / 2;
    const auto best = best_cut(box, static_cast<double>(ranks) / (last - first), ranks, last - first - ranks);
    if (!best) return false;
    LatticeBox below = box;
    LatticeBox above = box;
    below.upper[best->direction] = above.lower[best->direction] = best->place;
    return cut(below, first, first + ranks) && cut(above, first + ranks, last);
  }

 private:
  struct Cut {
    int direction;
    int place;
  };

  /// The one that cuts fewest faces among those that part the weight as it should be, or nearly so.
  [[nodiscard]] std::optional<Cut> best_cut(const LatticeBox& box, double part, int ranks_below,
                                            int ranks_above) const {
    std::optional<Cut> best;
    constexpr double none = std::numeric_limits<double>::infinity();
    std::array<double, 3> least{none, none, none};  // the largest share, roughly; faces; the largest share
    for (const int a : {1, 2, 0}) {
      if (a >= dim_ || box.extent(a) < 2) continue;
      std::vector<std::int64_t> layer(box.extent(a), 0);
      std::vector<std::int64_t> seeds(box.extent(a), 0);
      for_cells(box, [&](const std::array<int, 3>& seed) {
        const std::int64_t weight = weight_(seed);
        layer[seed[a] - box.lower[a]] += weight;
        seeds[seed[a] - box.lower[a]] += weight > 0 ? 1 : 0;
      });
      std::int64_t total = 0;
      std::int64_t there = 0;
      for (int i = 0; i < box.extent(a); ++i) {
        total += layer[i];
        there += seeds[i];
      }
      std::int64_t below = 0;
      std::int64_t seeds_below = 0;
      for (int i = 1; i < box.extent(a); ++i) {
        below += layer[i - 1];
        seeds_below += seeds[i - 1];
        if (seeds_below < ranks_below || there - seeds_below < ranks_above) continue;
        // A rank with a twentieth more work is worth as many faces fewer.
        const double share = static_cast<double>(below) / static_cast<double>(total);
        const double most = std::max(share / part, (1.0 - share) / (1.0 - part));
        const double faces = static_cast<double>(std::min(seeds[i - 1], seeds[i]));
        const std::array<double, 3> cost{std::round(20.0 * most), faces, most};
        if (cost < least) {
          least = cost;
          best = {a, box.lower[a] + i};
        }
      }
    }
    return best;
  }

  int dim_;
  const Weight& weight_;
  std::vector<LatticeBox>& boxes_;
};

}  // namespace

Partition::Partition(std::shared_ptr<const Communicator> communicator, int dim, const std::array<int, 3>& seeds,
                     const Weight& weight)
    : communicator_(std::move(communicator)), seeds_(seeds), boxes_(communicator_->size()) {
  const LatticeBox all{{}, seeds};
  std::int64_t there = 0;
  for_cells(all, [&](const std::array<int, 3>& seed) { there += weight(seed) > 0 ? 1 : 0; });
  const auto deal_out = [&](int ranks) {
    boxes_.assign(ranks, {});
    return ranks <= there && Bisection(dim, weight, boxes_).cut(all, 0, ranks);
  };
  int most = communicator_->size();
  if (deal_out(most)) return;
  while (most > 1 && !deal_out(most)) --most;
  throw InputError(
      fmt::format("{} ranks are too many for this mesh, whose cells are dealt out in {} pieces: start at most {}",
                  communicator_->size(), there, most));
}

bool Partition::refines_to(const std::array<int, 3>& extent) const {
  for (int a = 0; a < 3; ++a) {
    if (extent[a] % seeds_[a] != 0) return false;
  }
  return true;
}

LatticeBox Partition::box(int rank, const std::array<int, 3>& extent) const {
  LatticeBox box = boxes_[rank];
  for (int a = 0; a < 3; ++a) {
    const int ratio = extent[a] / seeds_[a];
    box.lower[a] *= ratio;
    box.upper[a] *= ratio;
  }
  return box;
}

}  // namespace solenoid
