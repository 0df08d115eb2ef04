// What the study `corners` goes through, and how it judges.
#include "studies/corners/setting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "case/keys.hpp"
#include "studies/corners/row.hpp"

namespace solenoid::studies::corners {
namespace {

/// Those that this build has of both equations in both dimensions.
const std::vector<int>& orders() {
  static const std::vector<int> common = [] {
    std::vector<int> of_all = available_orders(3);
    for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
      for (const int dim : {2, 3}) {
        const std::vector<int> available = available_orders(dim, equation);
        std::erase_if(of_all,
                      [&](int k) { return std::find(available.begin(), available.end(), k) == available.end(); });
      }
    }
    return of_all;
  }();
  return common;
}

std::size_t index_of(const std::string& what, const std::string& value) {
  const auto& changes = all_changes();
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const Change& change) { return change.what == what && change.value == value; });
  EXPECT_NE(found, changes.end()) << what << " " << value;
  return found - changes.begin();
}

std::set<std::string> values_of(const std::string& what) {
  std::set<std::string> values;
  for (const Change& change : all_changes()) {
    if (change.what == what) values.insert(change.value);
  }
  return values;
}

/// The words that a key may have are those of its type: "\"gmres\", \"fmg\" or \"vcycle\"".
std::set<std::string> words_of(const KeyInfo& key) {
  const std::string type(key.type);
  const std::regex quoted("\"([^\"]+)\"");
  std::set<std::string> words;
  for (std::sregex_iterator word(type.begin(), type.end(), quoted), end; word != end; ++word) words.insert((*word)[1]);
  words.erase("...");  // any text
  return words;
}

/// Every choice that a case file leaves is changed to every value but the main path's, its default.
TEST(Corners, ChangeEveryChoiceOfTheCaseFile) {
  int choices = 0;
  for (const Section& section : case_sections()) {
    if (section.name != "solver" && section.name != "physics") continue;
    for (const KeyInfo& key : section.keys) {
      std::set<std::string> words = words_of(key);
      if (words.empty()) continue;
      ++choices;
      std::string fallback(key.fallback);
      fallback.erase(std::remove(fallback.begin(), fallback.end(), '"'), fallback.end());
      if (key.name == "form") fallback = "gradient";  // where the viscosity is one number
      EXPECT_EQ(words.erase(fallback), 1) << key.name;
      EXPECT_EQ(values_of(std::string(key.name)), words) << key.name;
    }
  }
  EXPECT_GE(choices, 8);
}

TEST(Corners, ChangeToEveryKindOfSide) {
  std::set<std::string> kinds;
  std::set<std::string> holes{"hole, velocity"};
  for (const auto& [name, kind] : Names<SideKind>::all) {
    if (kind != SideKind::velocity) kinds.emplace(name);
    holes.insert("hole, " + std::string(name));
  }
  EXPECT_EQ(values_of("sides"), kinds);
  EXPECT_EQ(values_of("xmax"), kinds);
  const auto domains = values_of("domain");
  EXPECT_TRUE(std::includes(domains.begin(), domains.end(), holes.begin(), holes.end()));
}

/// Alone, or with Poisson's equation; but for periodic holes, which there are not.
TEST(Corners, AreProblemsThatCanBeSolved) {
  const std::size_t poisson = index_of("equation", "poisson");
  const int order = orders().back();
  for (std::size_t i = 0; i < all_changes().size(); ++i) {
    const bool possible = all_changes()[i].value != "hole, periodic";
    EXPECT_EQ(valid(setting_of({i}), order) || valid(setting_of({poisson, i}), order), possible)
        << all_changes()[i].what << " " << all_changes()[i].value;
  }
  EXPECT_TRUE(valid(Setting{}, order));
  EXPECT_FALSE(valid(Setting{}, 99));
}

TEST(Corners, AreOfTheSizeThatIsAskedFor) {
  for (std::size_t i = 0; i < all_changes().size(); ++i) {
    const Setting setting = setting_of({i});
    const int order = orders().front();
    if (!valid(setting, order)) continue;
    for (const double size : {1e4, 1e6}) {
      const auto dofs = static_cast<double>(estimate(setting.problem(order, setting.refine_for(order, size))).dofs);
      EXPECT_LT(std::max(dofs / size, size / dofs), 4.0) << all_changes()[i].what << " " << all_changes()[i].value;
    }
  }
}

TEST(Corners, DrawTheSamePairsFromTheSameSeed) {
  const std::vector<double> sizes{1e4, 1e5};
  const auto pairs = drawn_pairs(120, 1, orders(), sizes, valid);
  ASSERT_EQ(pairs.size(), 120);
  const std::vector<Case> beginning(pairs.begin(), pairs.begin() + 20);
  EXPECT_EQ(beginning, drawn_pairs(20, 1, orders(), sizes, valid));
  EXPECT_NE(beginning, drawn_pairs(20, 2, orders(), sizes, valid));
  std::set<std::size_t> changed;
  for (const Case& what : pairs) {
    ASSERT_EQ(what.changes.size(), 2);
    EXPECT_LT(what.changes[0], what.changes[1]);
    EXPECT_NE(all_changes()[what.changes[0]].what, all_changes()[what.changes[1]].what);
    EXPECT_TRUE(valid(setting_of(what.changes), what.order)) << label(what);
    EXPECT_EQ(std::count(pairs.begin(), pairs.end(), what), 1) << label(what);
    changed.insert(what.changes.begin(), what.changes.end());
  }
  EXPECT_GE(changed.size() + 3, all_changes().size());
  // No more than there are.
  const auto few = [](const Setting& setting, int) { return setting.dim == 2 && setting.mass > 0.0; };
  EXPECT_EQ(drawn_pairs(50, 1, {orders().front()}, {1e4}, few).size(), 2);
}

TEST(Corners, MainPathAndSingleChanges) {
  const auto singles = single_changes(orders(), {1e4, 1e5}, valid);
  const auto precision = index_of("precision", "double");
  const auto main = main_path({orders().front()}, {1e4, 1e5});
  for (const Changes& changes : {Changes{}, Changes{precision}}) {
    const auto rows =
        std::count_if(main.begin(), main.end(), [&](const Case& what) { return what.changes == changes; });
    EXPECT_EQ(rows, 3);  // one coarser, the smallest, the largest
  }
  for (const Case& what : singles) EXPECT_FALSE(on_main_path(what.changes)) << label(what);
  for (std::size_t i = 0; i < all_changes().size(); ++i) {
    if (i == precision || !valid(setting_of({i}), orders().front())) continue;
    const Case wanted{{i}, orders().front(), 1e5};
    EXPECT_NE(std::find(singles.begin(), singles.end(), wanted), singles.end()) << label(wanted);
  }
}

Row row_with(const Changes& changes, std::int64_t dofs, double ns) {
  Row row{.what = {changes, 2, static_cast<double>(dofs)}};
  row.dofs = dofs;
  row.levels = 4;
  row.coarsest_dofs = 1856;
  row.coarsest = CoarseSolve::dense;
  row.iterations = 5;
  row.converged = true;
  row.seconds.fill(ns * 1e-9 * static_cast<double>(dofs));
  return row;
}

TEST(Corners, CompareWithTheMainPathOfTheSameSize) {
  const auto precision = index_of("precision", "double");
  const MainPath main({row_with({}, 1'000, 100.0), row_with({}, 100'000, 1.0), row_with({precision}, 1'000, 200.0)});
  const auto ns = [&](Precision of, double dofs) { return *main.ns(cycle, 2, of, dofs); };
  EXPECT_NEAR(ns(Precision::mixed, 1e3), 100.0, 1e-10);
  EXPECT_NEAR(ns(Precision::mixed, 1e4), 10.0, 1e-10);  // as a power of the number of unknowns
  EXPECT_NEAR(ns(Precision::mixed, 1e5), 1.0, 1e-10);
  EXPECT_NEAR(ns(Precision::mixed, 1e9), 1.0, 1e-10);
  EXPECT_NEAR(ns(Precision::mixed, 1e2), 100.0, 1e-10);
  EXPECT_NEAR(ns(Precision::full_double, 1e3), 200.0, 1e-10);
  EXPECT_FALSE(main.ns(cycle, 3, Precision::mixed, 1e3));

  const auto slip = index_of("xmax", "slip");
  EXPECT_NEAR((*over_main_path(row_with({slip}, 10'000, 30.0), main))[cycle], 3.0, 1e-10);
  EXPECT_NEAR((*over_main_path(row_with({slip, precision}, 1'000, 30.0), main))[cycle], 0.15, 1e-10);
}

TEST(Corners, KnowTheirBars) {
  std::array<double, figures> ratios{};
  ratios.fill(2.0);
  EXPECT_TRUE(above_bars(ratios).empty());
  ratios.fill(2.1);
  EXPECT_EQ(above_bars(ratios), (std::vector<Figure>{smoothing_step, cycle, iteration, set_up}));

  const auto slip = index_of("xmax", "slip");
  const Row row = row_with({slip}, 2'000'000, 1.0);
  EXPECT_TRUE(bars_hold(row, true));
  EXPECT_FALSE(bars_hold(row, false));
  EXPECT_FALSE(bars_hold(row_with({slip}, 1'000'000, 1.0), true));
  Row coarse = row;
  coarse.coarsest_dofs = 8192;
  EXPECT_TRUE(bars_hold(coarse, true));
  coarse.coarsest_dofs = 8193;
  EXPECT_FALSE(bars_hold(coarse, true));
  for (const auto& [what, value] : {std::pair{"smoother", "additive"},
                                    {"local_solver", "chebyshev"},
                                    {"local_solver", "cg"},
                                    {"local_solver", "dense"},
                                    {"preset", "paper"},
                                    {"patch", "galerkin"}}) {
    EXPECT_FALSE(bars_hold(row_with({slip, index_of(what, value)}, 2'000'000, 1.0), true)) << what;
  }
  EXPECT_TRUE(bars_hold(row_with({slip, index_of("method", "fmg")}, 2'000'000, 1.0), true));
}

TEST(Corners, RowsAreReadBackFromJson) {
  const MainPath main({row_with({}, 2'000'000, 1.0)});
  Row row = row_with({index_of("xmax", "slip"), index_of("smoother", "additive")}, 2'000'000, 3.0);
  row.coarsest = CoarseSolve::mac;
  row.converged = false;
  const auto json = to_json(row, main, true);
  EXPECT_EQ(json["over_main_path"]["set_up"], 3.0);
  EXPECT_EQ(json["above_bars"].size(), 4);
  EXPECT_EQ(json["slow_on_purpose"], true);
  EXPECT_EQ(json["bars_hold"], false);
  const Row back = row_of(json);
  EXPECT_EQ(back.what, row.what);
  EXPECT_EQ(back.dofs, row.dofs);
  EXPECT_EQ(back.levels, row.levels);
  EXPECT_EQ(back.coarsest_dofs, row.coarsest_dofs);
  EXPECT_EQ(back.coarsest, row.coarsest);
  EXPECT_EQ(back.iterations, row.iterations);
  EXPECT_EQ(back.converged, row.converged);
  for (int figure = 0; figure < figures; ++figure) EXPECT_DOUBLE_EQ(back.seconds[figure], row.seconds[figure]);

  Row missing{.what = row.what, .left_out = "it does not fit into the memory"};
  EXPECT_EQ(row_of(to_json(missing, main, true)).left_out, missing.left_out);
  EXPECT_FALSE(over_main_path(missing, main));

  auto unknown = json;
  unknown["changes"] = {{"xmax", "porous"}};
  EXPECT_THROW(row_of(unknown), InputError);
  auto incomplete = json;
  incomplete.erase("dofs");
  EXPECT_THROW(row_of(incomplete), InputError);
}

}  // namespace
}  // namespace solenoid::studies::corners
