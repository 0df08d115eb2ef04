/// \file
/// What travels between ranks while they smooth: as much as is read, and no less.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parts_of_levels.hpp"
#include "random_cases.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {
namespace {

using namespace on_ranks;

/// A step of what follows the residual or a colour: the residual of x or nothing, and a colour.
struct Step {
  bool residual;
  int colour;
};
std::vector<Step> steps_of(const Level& level) {
  std::vector<Step> steps;
  for (int turn = 0; turn < 2; ++turn) {
    for (int colour = 0; colour < std::ssize(level.patches.colours); ++colour) {
      steps.push_back({turn == 1 && colour == 0, colour});
    }
  }
  return steps;
}

/// Vectors of a level on the way through a smoothing step, the residual and another step, as in a V(1,1) cycle.
class Sweeping {
 public:
  Sweeping(Engine& engine, const Level& level, const Values& b, const Values& x)
      : kernels_(make_kernels<double>(engine, level, LocalSolverKind::direct)),
        b_(on<double>(engine, b)),
        start_(on<double>(engine, x)),
        x_(engine, level.size()),
        y_(engine, level.size()),
        r_(engine, level.size()),
        from_(engine, level.size()) {
    kernels_->prepare_smoother(false);
    kernels_->bring_ghosts(level, start_.data());
    begin();
  }
  void begin() { kernels_->copy(start_.data(), x_.data()); }
  /// Makes y, and r if the step has one, of a copy of x.
  void make(const Step& step) {
    kernels_->copy(x_.data(), from_.data());
    if (step.residual) kernels_->residual(b_.data(), from_.data(), r_.data());
    kernels_->smooth(step.colour, b_.data(), from_.data(), y_.data());
  }
  /// The first colour from zero, of which only b has to come.
  void make_from_zero() { kernels_->smooth(0, b_.data(), nullptr, y_.data()); }
  [[nodiscard]] const double* x() const { return x_.data(); }
  [[nodiscard]] Values y() const { return from(y_); }
  [[nodiscard]] Values r() const { return from(r_); }
  /// x = y
  void go_on() { kernels_->copy(y_.data(), x_.data()); }

 private:
  std::unique_ptr<Kernels<double>> kernels_;
  Vector<double> b_;
  Vector<double> start_;
  Vector<double> x_;
  Vector<double> y_;
  Vector<double> r_;
  Vector<double> from_;
};

/// The values of a vector of this rank that others are computed of without another message: those of owned records;
/// of a residual also the hats below owned cells, which are restricted.
std::vector<std::int64_t> places_that_count(const Level& level, bool residual) {
  const Grid& grid = level.grid;
  const int dim = grid.dim();
  const int block = power(level.equation.n(), dim);
  const int columns = power(level.equation.n(), dim - 1);
  std::vector<std::int64_t> places;
  for (const Record record : grid.layout().records()) {
    const bool owned = grid.layout().is_owned(record);
    for (int i = 0; i < level.equation.record() && owned; ++i) places.push_back(level.index(record, i));
    if (!residual || !owned || !grid.layout().is_cell(record)) continue;
    for (int c = 0; c < dim; ++c) {
      const Record below = grid.neighbour(record, 2 * c);
      if (!grid.layout().is_cell(below) || grid.layout().is_owned(below)) continue;
      for (int i = 0; i < columns; ++i) places.push_back(level.index(below, c * block + i));
    }
  }
  return places;
}

/// Those of all records that this rank has.
std::vector<std::int64_t> places_of_records(const Level& level) {
  std::vector<std::int64_t> places;
  for (const Record record : level.grid.layout().records()) {
    for (int i = 0; i < level.equation.record(); ++i) places.push_back(level.index(record, i));
  }
  return places;
}

/// The largest difference at places of a and b, relative to the largest value there; infinite for what is no number.
double difference(const std::vector<std::int64_t>& places_in_a, const Values& a,
                  const std::vector<std::int64_t>& places_in_b, const Values& b) {
  double most = 0.0;
  double size = 1e-300;
  for (std::size_t i = 0; i < places_in_a.size(); ++i) {
    const double here = std::abs(a[places_in_a[i]] - b[places_in_b[i]]);
    if (!std::isfinite(here)) return std::numeric_limits<double>::infinity();
    most = std::max(most, here);
    size = std::max(size, std::abs(b[places_in_b[i]]));
  }
  return most / size;
}

/// What a step's messages bring of a class of values: (step, first value of the class).
using Footprint = std::pair<std::string, int>;

/// A colour on several ranks is that of one, with what the messages bring. Without any of that it is not.
class Messages {
 public:
  /// `lossy`: some of what messages bring will be lost.
  Messages(const test::MeshCase& what, int order, bool lossy)
      : levels_(what, order, {}, false, cut(what.mesh, extent_of(what.mesh), 2)),
        of_y_(places_that_count(levels_.part, false)),
        of_r_(places_that_count(levels_.part, true)),
        whole_(on_one(), levels_.whole, test::random_vector(levels_.whole, 2), test::random_vector(levels_.whole, 1)),
        part_(on_all(), levels_.part, levels_.part_of(test::random_vector(levels_.whole, 2)),
              levels_.part_of(test::random_vector(levels_.whole, 1))) {
    watch_messages(on_all(), lossy);
  }
  ~Messages() { watch_messages(on_all(), false); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// visit(step, its name) once it is made.
  template <class Visit>
  void check(const Visit& visit) {
    for (const Step& step : steps_of(levels_.whole)) {
      const std::string name = fmt::format("{}colour {}", step.residual ? "residual, " : "", step.colour);
      SCOPED_TRACE(name);
      lose_values(on_all(), 0, 0);
      whole_.make(step);
      part_.make(step);
      y_ = part_.y();
      expect_near(y_, whole_.y(), of_y_);
      if (step.residual) {
        r_ = part_.r();
        expect_near(r_, whole_.r(), of_r_);
      }
      visit(step, name);
      lose_values(on_all(), 0, 0);
      part_.make(step);
      whole_.go_on();
      part_.go_on();
    }
  }

  /// Makes the step that was made last without some of what its messages bring, once for each: the values of a class of
  /// a record, or all of a class from a neighbour. Each rank loses something else at the same time: what comes of it
  /// goes no further than one kernel. lost(class, whether that was noticed)
  template <class Visit>
  void lose(const Step& step, bool one_by_one, const Visit& lost) {
    struct Loss {
      std::int64_t first;
      std::int64_t last;
      int value_class;
    };
    std::vector<Loss> losses;
    std::int64_t begin = 0;
    for (const PackedRecords& sent : lose_values(on_all(), 0, 0)) {
      const std::int64_t end = begin + sent.count;
      const std::int64_t size = one_by_one ? 1 : sent.count;
      for (; begin < end; begin += size) losses.push_back({begin, begin + size, sent.first});
    }
    auto most = static_cast<double>(losses.size());
    ranks()->maximum(std::span(&most, 1));
    for (std::size_t i = 0; i < static_cast<std::size_t>(most); ++i) {
      const Loss loss = i < losses.size() ? losses[i] : Loss{};
      lose_values(on_all(), loss.first, loss.last);
      part_.make(step);
      if (i >= losses.size()) continue;
      lost(loss.value_class, difference(of_y_, part_.y(), of_y_, y_) > 1e-6 ||
                                 (step.residual && difference(of_r_, part_.r(), of_r_, r_) > 1e-6));
    }
  }

 private:
  void expect_near(const Values& of_part, const Values& of_whole, const std::vector<std::int64_t>& places) {
    const double difference = solenoid::difference(places, of_part, levels_.in_whole(places), of_whole);
    expect_everywhere(difference <= 1e-10, fmt::format("differs from one rank by {}", difference));
  }

  Levels levels_;
  std::vector<std::int64_t> of_y_;
  std::vector<std::int64_t> of_r_;
  Sweeping whole_;
  Sweeping part_;
  Values y_;  // of this rank with all messages
  Values r_;
};

class RanksMessages : public testing::TestWithParam<int> {
 protected:
  /// Those with cells enough; none without an order that has values of all classes.
  void for_meshes(const std::function<void(const test::MeshCase&, int order)>& visit) {
    const int dim = GetParam();
    for (const test::MeshCase& what : test::mesh_cases(dim)) {
      if (order() < 1 || !can_be_cut(what.mesh)) continue;
      SCOPED_TRACE(what.name);
      visit(what, order());
    }
  }
  /// visit() with the smoother for a level's size, then with each variant by name.
  static void for_smoothers(const std::function<void()>& visit) {
    visit();
    if (order() < 1) return;
    const Equation equation{.dim = GetParam(), .order = order(), .kind = EquationKind::stokes};
    for (const std::string& variant : on_all().smoother_variants(equation, false)) {
      SCOPED_TRACE(variant);
      on_all().choose_smoother(variant);
      visit();
    }
    on_all().choose_smoother("");
  }
  [[nodiscard]] static int order() {
    const auto orders = available_orders(GetParam());
    const auto found = std::find_if(orders.begin(), orders.end(), [](int order) { return order > 0; });
    return found == orders.end() ? 0 : *found;
  }
};

/// With the smoother that engines take for a level, and with all others that a GPU has, whose kernels bring ghosts.
TEST_P(RanksMessages, BringAllThatIsRead) {
  for_smoothers([&] {
    for_meshes([](const test::MeshCase& what, int order) {
      Messages(what, order, false).check([](const Step&, const std::string&) {});
    });
  });
}

/// Where all patches are alike no value is sent in vain.
TEST_P(RanksMessages, BringNothingElse) {
  if (order() < 1 || ranks()->size() > 4) GTEST_SKIP() << "no order with all classes of values, or too many ranks";
  Messages messages({"periodic", GetParam() == 2 ? test::box({8, 10}) : test::box({6, 4, 4}),
                     test::periodic(GetParam() == 2 ? std::vector{0, 1} : std::vector{0, 1, 2})},
                    order(), true);
  int tried = 0;
  messages.check([&](const Step& step, const std::string&) {
    messages.lose(step, true, [&](int value_class, bool noticed) {
      ++tried;
      EXPECT_TRUE(noticed) << "rank " << ranks()->rank() << " has no need of values from " << value_class << " on";
    });
  });
  EXPECT_GT(tried, 0);
}

/// At walls, open sides and holes engines differ in what they read of patches' old values: there each class of values
/// that some step's messages have is needed by a rank on one of the meshes.
TEST_P(RanksMessages, BringNoClassInVain) {
  if (order() < 1 || ranks()->size() > 4) GTEST_SKIP() << "no order with all classes of values, or too many ranks";
  std::set<Footprint> sent;
  std::set<Footprint> needed;
  for_meshes([&](const test::MeshCase& what, int order) {
    Messages messages(what, order, true);
    messages.check([&](const Step& step, const std::string& name) {
      messages.lose(step, false, [&](int value_class, bool noticed) {
        sent.emplace(name, value_class);
        if (noticed) needed.emplace(name, value_class);
      });
    });
  });
  EXPECT_FALSE(sent.empty());
  for (const auto& [step, value_class] : sent) {
    EXPECT_TRUE(needed.contains({step, value_class})) << step << ": values from " << value_class << " on";
  }
}

/// Work that is recorded once and repeated, each rank in its own time: ghosts are those of this repetition, and a
/// cycle's smoothing steps make the same bits. Numbers are added up where they are, so that nobody waits for them.
void repeat(const test::MeshCase& what, int order) {
  const Levels levels(what, order, {}, false, cut(what.mesh, extent_of(what.mesh), 2));
  const Level& level = levels.part;
  Values whole = test::random_vector(levels.whole, 1);
  for (double& value : whole) value = std::round(50.0 * value);
  const Values numbers = levels.part_of(whole);

  // Of whole numbers sums are exact.
  const auto kernels = make_kernels<double>(on_all(), level, LocalSolverKind::direct);
  const Vector<double> step = on<double>(on_all(), numbers);
  Vector<double> x(on_all(), level.size());
  Vector<double> sum(on_all(), level.size());
  // What a cycle does, and how it differs from what it did first.
  const std::vector<Step> steps = steps_of(levels.whole);
  Sweeping cycle(on_all(), level, numbers, numbers);
  const auto smooth = [&] {
    cycle.make_from_zero();
    cycle.go_on();
    for (const Step& of_cycle : steps) {
      cycle.make(of_cycle);
      cycle.go_on();
    }
  };
  smooth();
  Vector<double> first(on_all(), level.size());
  Vector<double> difference(on_all(), level.size());
  Vector<double> differences(on_all(), level.size());
  kernels->copy(cycle.x(), first.data());
  const Recorded work = on_all().record([&] {
    kernels->axpy(1.0, step.data(), x.data());
    kernels->bring_ghosts(level, x.data());
    kernels->axpy(1.0, x.data(), sum.data());
    smooth();
    kernels->copy(first.data(), difference.data());
    kernels->axpy(-1.0, cycle.x(), difference.data());
    kernels->axpy(1.0, difference.data(), differences.data());
  });
  on_all().zero(x.data(), level.size() * sizeof(double));  // recording may have done the work once
  on_all().zero(sum.data(), level.size() * sizeof(double));
  on_all().zero(differences.data(), level.size() * sizeof(double));
  const int repetitions = test::setting("SOLENOID_RANKS_REPETITIONS", 100);
  std::mt19937 generator(ranks()->rank());
  std::exponential_distribution<double> microseconds(1.0 / 30.0);
  for (int i = 0; i < repetitions; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(microseconds(generator))));
    work();
  }

  const double so_many = 0.5 * repetitions * (repetitions + 1.0);
  const Values sums = from(sum);
  const Values all_differences = from(differences);
  std::int64_t wrong_ghosts = 0;
  std::int64_t wrong_cycles = 0;
  const auto places = places_of_records(level);
  const auto in_whole = levels.in_whole(places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (sums[places[i]] != so_many * whole[in_whole[i]]) ++wrong_ghosts;
  }
  for (const std::int64_t place : places_that_count(level, false)) {
    if (all_differences[place] != 0.0) ++wrong_cycles;
  }
  expect_everywhere(wrong_ghosts == 0, fmt::format("{} values are not those of all repetitions", wrong_ghosts));
  expect_everywhere(wrong_cycles == 0, fmt::format("{} values had other bits in some repetition", wrong_cycles));
}

/// In a channel several kernels smooth a colour, in a box with walls one, which may bring the ghosts itself; in one
/// with odd numbers of cells records of ghosts lie beside those of others.
TEST_P(RanksMessages, AreThoseOfTheirRepetition) {
  if (order() < 1) GTEST_SKIP() << "no order with all classes of values";
  const Mesh mesh = GetParam() == 2 ? test::box({12, 8}) : test::box({6, 4, 4});
  if (!can_be_cut(mesh)) GTEST_SKIP() << "too many ranks";
  const Mesh odd = GetParam() == 2 ? test::box({11, 9}) : test::box({5, 7, 5});
  for_smoothers([&] {
    repeat({"channel", mesh, test::sides({{1, SideKind::outflow}, {2, SideKind::slip}})}, order());
    repeat({"walls", mesh, {}}, order());
    if (can_be_cut(odd)) repeat({"odd", odd, {}}, order());
  });
}

INSTANTIATE_TEST_SUITE_P(Dim, RanksMessages, testing::Values(2, 3));

}  // namespace
}  // namespace solenoid
