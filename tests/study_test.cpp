// Manufactured solutions, and the studies of the program.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "engine/cpu/ceilings.hpp"
#include "solenoid/solver.hpp"
#include "studies/manufactured.hpp"

namespace solenoid {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using Kind = ManufacturedKind;

struct ManufacturedTest : testing::TestWithParam<std::tuple<Kind, int>> {
  [[nodiscard]] Kind kind() const { return std::get<0>(GetParam()); }
  [[nodiscard]] int dim() const { return std::get<1>(GetParam()); }

  std::vector<Point> random_points(int count) const {
    std::mt19937_64 engine(5);
    std::uniform_real_distribution<double> inside(0.1, 0.9);
    std::vector<Point> points(count, Point{});
    for (Point& point : points) {
      for (int a = 0; a < dim(); ++a) point[a] = inside(engine);
    }
    return points;
  }
};

/// Central differences of sixth order.
double first_derivative(const ScalarField& f, Point x, int a, double h) {
  const auto at = [&](int i) {
    Point y = x;
    y[a] += i * h;
    return f(y);
  };
  return (45 * (at(1) - at(-1)) - 9 * (at(2) - at(-2)) + at(3) - at(-3)) / (60 * h);
}
double second_derivative(const ScalarField& f, Point x, int a, double h) {
  const auto at = [&](int i) {
    Point y = x;
    y[a] += i * h;
    return f(y);
  };
  return (-490 * at(0) + 270 * (at(1) + at(-1)) - 27 * (at(2) + at(-2)) + 2 * (at(3) + at(-3))) / (180 * h * h);
}

TEST_P(ManufacturedTest, IsASolution) {
  constexpr double viscosity = 0.7;
  constexpr double h = 4e-3;
  constexpr double tolerance = 1e-6;  // values are of the order of 1 to 100
  const Manufactured exact(kind(), dim(), viscosity);
  for (const Point& x : random_points(20)) {
    double divergence = 0.0;
    for (int a = 0; a < dim(); ++a) divergence += first_derivative(exact.velocity[a], x, a, h);
    EXPECT_NEAR(divergence, 0.0, tolerance);
    for (int c = 0; c < dim(); ++c) {
      double f = first_derivative(exact.pressure, x, c, h);
      for (int a = 0; a < dim(); ++a) f -= viscosity * second_derivative(exact.velocity[c], x, a, h);
      EXPECT_NEAR(exact.force[c](x), f, tolerance);
    }
  }
}

TEST_P(ManufacturedTest, VanishesOnTheBoundary) {
  const Manufactured exact(kind(), dim());
  for (Point x : random_points(10)) {
    for (int side = 0; side < 2 * dim(); ++side) {
      Point on_side = x;
      on_side[side / 2] = side % 2;
      for (int c = 0; c < dim(); ++c) EXPECT_NEAR(exact.velocity[c](on_side), 0.0, 1e-14);
    }
  }
}

TEST_P(ManufacturedTest, BulkEvaluationAgreesWithSinglePoints) {
  const Manufactured exact(kind(), dim());
  const auto points = random_points(500);  // more than the cache of coordinates holds
  std::vector<double> values(points.size());
  exact.force[0].evaluate(points, values);
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(values[i], exact.force[0](points[i]));
}

INSTANTIATE_TEST_SUITE_P(All, ManufacturedTest,
                         testing::Combine(testing::Values(Kind::gaussian, Kind::trigonometric), testing::Values(2, 3)));

TEST(Manufactured, HasTheKnownFormulas) {
  constexpr double pi = 3.14159265358979323846;
  const Point x{0.3, 0.45, 0.8};
  const auto s = [](double t) { return std::sin(pi * t); };
  const Manufactured step104(Kind::trigonometric, 3);
  const double u = pi * s(x[0]) * s(x[0]) * (s(2 * x[1]) * s(x[2]) * s(x[2]) - s(x[1]) * s(x[1]) * s(2 * x[2]));
  EXPECT_NEAR(step104.velocity[0](x), u, 1e-14);
  EXPECT_NEAR(step104.pressure(x), std::cos(pi * x[0]) * std::cos(pi * x[1]) * std::cos(pi * x[2]), 1e-15);

  // As in cases/paper_2d.toml.
  const Point y{0.3, 0.45, 0.0};
  const auto paper = ScalarField::expression(
      "3/(2*pi)*exp(-1.5*(x^2+y^2-1.3*(x+y)+0.845))*x^2*(1-2*x+x^2)*y*(1-y)*(((3*y-4.95)*y-2.05)*y+2)", 2);
  EXPECT_NEAR(Manufactured(Kind::gaussian, 2).velocity[0](y), paper(y), 1e-16);
}

TEST(Ceilings, ArePlausible) {
  const CopyRate copy = measure_copy(2, 200'000'000);
  EXPECT_GT(copy.bytes, 40'000'000);
  EXPECT_LE(copy.bytes, 50'000'000);
  EXPECT_GT(copy.bytes_per_second, 1e8);
  EXPECT_LT(copy.bytes_per_second, 1e13);
  EXPECT_GT(measure_fma<float>(1), 1e8);
  EXPECT_LT(measure_fma<double>(1), 1e12);
}

bool has_orders(int dim, const std::vector<int>& orders) {
  const auto available = available_orders(dim);
  return std::includes(available.begin(), available.end(), orders.begin(), orders.end());
}

class Study : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "solenoid-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Exit code of `solenoid study ARGUMENTS --json FILE`.
  int run(const std::string& arguments) {
    fs::remove(file());
    return start(arguments + " --json " + file().string());
  }
  /// Exit code of `PROGRAM study ARGUMENTS`.
  int start(const std::string& arguments, const fs::path& program = SOLENOID_PROGRAM) {
    const std::string command = program.string() + " study " + arguments + " > " + (folder_ / "out").string() + " 2> " +
                                (folder_ / "err").string();
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }
  [[nodiscard]] fs::path file() const { return folder_ / "study.json"; }
  [[nodiscard]] Json json() const { return Json::parse(std::ifstream(file())); }
  [[nodiscard]] std::string output() const { return text("out"); }
  [[nodiscard]] std::string errors() const { return text("err"); }

 private:
  [[nodiscard]] std::string text(const char* name) const {
    std::ifstream stream(folder_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder_;
};

TEST_F(Study, IterationsAreThoseOfThePaper) {
  if (!has_orders(2, {3})) GTEST_SKIP() << "this build has no order 3 in 2D";
  ASSERT_EQ(run("iterations --preset paper --orders 3 --levels 3..5"), 0);
  const Json study = json();
  EXPECT_EQ(study["precision"], "double");
  EXPECT_EQ(study["paper"]["compared"], 3);
  EXPECT_EQ(study["paper"]["outside"], 0);
  const std::array<double, 3> paper{2.6, 3.2, 3.3};
  ASSERT_EQ(study["rows"].size(), 3);
  for (int i = 0; i < 3; ++i) {
    const Json& row = study["rows"][i];
    EXPECT_EQ(row["level"], 3 + i);
    EXPECT_EQ(row["paper"], paper[i]);
    EXPECT_NEAR(row["fractional_iterations"], paper[i], 0.1);
  }
}

TEST_F(Study, IterationsInThreeDimensions) {
  if (!has_orders(3, {1, 2})) GTEST_SKIP() << "this build lacks orders in 3D";
  ASSERT_EQ(run("iterations --orders 1,2 --levels 3,4"), 0);
  const Json study = json();
  EXPECT_TRUE(study["complete"]);
  EXPECT_FALSE(study.contains("paper"));
  ASSERT_EQ(study["rows"].size(), 8);
  for (const Json& row : study["rows"]) {
    EXPECT_TRUE(row["converged"]);
    const bool random = row["load"] == "random";
    const int most = row["order"] == 1 ? (random ? 10 : 7) : (random ? 6 : 4);
    EXPECT_LE(row["iterations"], most) << row;
  }
}

TEST_F(Study, ErrorsFallWithOrderKPlusOneIn2D) {
  const std::string orders = has_orders(2, {0, 1, 2, 3, 4, 5}) ? "0..5" : has_orders(2, {0, 1, 2, 3}) ? "0..3" : "2";
  ASSERT_EQ(run("convergence --dim 2 --refine 2..4 --orders " + orders), 0);
  const Json result = json();
  for (const Json& entry : result["orders"]) {
    const double expected = entry["expected"];
    EXPECT_NEAR(entry["velocity"], expected, 0.2) << entry;
    EXPECT_NEAR(entry["pressure"], expected, 0.3) << entry;
  }
  for (const Json& row : result["rows"]) EXPECT_LT(row["divergence_max"], 1e-12) << row;
}

TEST_F(Study, ErrorsFallWithOrderKPlusOneIn3D) {
  const std::string orders = has_orders(3, {0, 1, 2}) ? "0..2" : "2";
  ASSERT_EQ(run("convergence --dim 3 --refine 2..4 --orders " + orders), 0);
  const Json result = json();
  for (const Json& entry : result["orders"]) {
    const double expected = entry["expected"];
    EXPECT_NEAR(entry["velocity"], expected, 0.2) << entry;
    EXPECT_NEAR(entry["pressure"], expected, 0.3) << entry;
  }
  for (const Json& row : result["rows"]) EXPECT_LT(row["divergence_max"], 1e-12) << row;
}

TEST_F(Study, ErrorsOfPoissonsEquationFallWithOrderKPlusOne) {
  for (const int dim : {2, 3}) {
    const auto available = available_orders(dim, EquationKind::poisson);
    const int order = std::find(available.begin(), available.end(), 2) != available.end() ? 2 : available.front();
    const std::string arguments = fmt::format("--dim {} --refine 2..4 --orders {}", dim, order);
    ASSERT_EQ(run("convergence --equation poisson " + arguments), 0);
    const Json study = json();
    for (const Json& entry : study["orders"]) EXPECT_NEAR(entry["value"], order + 1, 0.3) << entry;
    for (const Json& row : study["rows"]) EXPECT_TRUE(row["converged"]) << row;
  }
}

TEST_F(Study, AnOrderTakesTwoMeshes) {
  if (!has_orders(2, {2})) GTEST_SKIP() << "this build has no order 2 in 2D";
  EXPECT_EQ(run("convergence --dim 2 --orders 2 --refine 2"), 1);
  EXPECT_EQ(json()["rows"].size(), 1);
  EXPECT_NE(output().find("no orders of 2D RT_2, which take two meshes"), std::string::npos) << output();
  EXPECT_EQ(output().find("All orders"), std::string::npos) << output();
}

TEST_F(Study, ThroughputHasAllParts) {
  if (!has_orders(3, {2})) GTEST_SKIP() << "this build has no order 2 in 3D";
  ASSERT_EQ(run("throughput --orders 2 --sizes 7e3,5e4 --threads 1 --rtol 1e-8"), 0);
  const Json study = json();
  EXPECT_EQ(study["threads"], 1);
  for (const char* key : {"copy_bytes_per_second", "fma_fp32_per_second", "fma_fp64_per_second"}) {
    EXPECT_GT(study["ceilings"][key], 0.0) << key;
  }
  ASSERT_EQ(study["rows"].size(), 2);
  EXPECT_EQ(study["rows"][0]["refine"], 2);
  EXPECT_EQ(study["rows"][1]["dofs"], 53568);
  EXPECT_EQ(study["rtol"], 1e-8);
  EXPECT_GT(study["rows"][1]["seconds"]["solve_mixed"], 0.0);
  for (const char* key : {"operator_fp64", "operator_fp32", "smoothing_step_fp32", "vcycle_fp32",
                          "full_multigrid_mixed", "solve_mixed"}) {
    EXPECT_GT(study["rows"][1]["ns_per_dof"][key], 0.0) << key;
  }
  for (const char* key : {"operator_fp64", "operator_fp32", "smoothing_step_fp32", "vcycle_fp32"}) {
    EXPECT_GT(study["rows"][1]["of_copy_bound"][key], 0.0) << key;
  }
  EXPECT_GT(study["rows"][1]["smoothing_step_in_operators"], 0.0);
}

TEST_F(Study, ThroughputOnOtherDomains) {
  if (!has_orders(2, {2})) GTEST_SKIP() << "this build has no order 2 in 2D";
  ASSERT_EQ(run("throughput --dim 2 --orders 2 --sizes 1e4 --domains walls,periodic,holes,outflow,stretched"), 0);
  const Json study = json();
  ASSERT_EQ(study["rows"].size(), 5);
  for (const Json& row : study["rows"]) EXPECT_GT(row["ns_per_dof"]["smoothing_step_fp32"], 0.0) << row;
}

TEST_F(Study, PartsOfAStep) {
  if (!has_orders(3, {2})) GTEST_SKIP() << "this build has no order 2 in 3D";
  for (const char* scheme : {"sbdf3", "ars233"}) {
    ASSERT_EQ(run(fmt::format("step --orders 2 --sizes 7e3 --threads 1 --device cpu --scheme {}", scheme)), 0);
    const Json study = json();
    EXPECT_EQ(study["scheme"], scheme);
    ASSERT_EQ(study["rows"].size(), 1);
    const Json& row = study["rows"][0];
    EXPECT_GE(row["cycles"], scheme == std::string("ars233") ? 3.0 : 1.0);
    double sum = row["ns_per_dof"]["rest"];
    for (const char* part : {"convection", "history", "mass", "residual", "cycle"}) {
      EXPECT_GT(row["ns_per_dof"][part], 0.0) << part;
      EXPECT_GT(row["floor_ns_per_dof"][part], 0.0) << part;
      sum += row["ns_per_dof"][part].get<double>();
    }
    EXPECT_NEAR(sum / row["ns_per_dof"]["step"].get<double>(), 1.0, 1e-12);
  }
}

TEST_F(Study, CoefficientsInVCycles) {
  if (!has_orders(2, {1})) GTEST_SKIP() << "this build has no order 1 in 2D";
  ASSERT_EQ(run("coefficients --dim 2 --orders 1 --sizes 1e4 --device cpu"), 0);
  const Json study = json();
  ASSERT_EQ(study["rows"].size(), 3);
  for (const Json& row : study["rows"]) {
    EXPECT_GT(row["seconds"]["vcycle"], 0.0);
    // Differences of times, which noise may make negative.
    for (const char* time : {"new_reaction", "known_reaction"}) EXPECT_TRUE(row["seconds"][time].is_number()) << row;
  }
}

/// Sinkers are where the same seed puts them, sharp ones take more iterations, and what does not converge says so.
TEST_F(Study, SinkersBySharpnessAndContrast) {
  if (!has_orders(2, {2})) GTEST_SKIP() << "this build has no order 2 in 2D";
  ASSERT_EQ(run("sinkers --dim 2 --orders 2 --sizes 7e3 --sinkers 1,4 --contrasts 1e2,1e4 --diameter 0.2 "
                "--max-iterations 60 --device cpu --threads 1"),
            0);
  const Json study = json();
  ASSERT_EQ(study["rows"].size(), 8);
  std::map<std::string, int> iterations;
  for (const Json& row : study["rows"]) {
    EXPECT_EQ(row["converged"], row["residual"] <= 1e-8) << row;
    EXPECT_GT(row["ns_per_unknown"], 0.0);
    EXPECT_GT(row["contrast_in_patches"], 1.0);
    if (row["shape"] == "sharp") {
      EXPECT_NEAR(row["contrast_in_patches"], row["contrast"], 0.7 * double(row["contrast"]));
    }
    iterations[row["shape"]] += int(row["iterations"]);
  }
  EXPECT_LT(iterations["smooth"], iterations["sharp"]);
  EXPECT_LT(study["rows"][0]["iterations"], 25);  // one, smooth, 1e2
}

TEST_F(Study, CapacityOfAFewUnknowns) {
  if (!has_orders(3, {2})) GTEST_SKIP() << "this build has no order 2 in 3D";
  ASSERT_EQ(run("capacity --orders 2 --size 2e6 --device cpu"), 0);
  const Json study = json();
  ASSERT_EQ(study["rows"].size(), 2);
  EXPECT_GT(study["rows"][1]["dofs"], 1'000'000);
  EXPECT_GT(study["rows"][1]["observed_order"]["pressure"], 2.8);
}

TEST_F(Study, Step104FindsTheFastestAccurateSolve) {
  if (!has_orders(3, {1, 2})) GTEST_SKIP() << "this build lacks orders in 3D";
  ASSERT_EQ(run("step104 --orders 1,2 --size 7e4"), 0);
  const Json study = json();
  ASSERT_EQ(study["rows"].size(), 2 * (3 + 3));
  double coarser = 0.0;
  for (const Json& row : study["rows"]) {
    if (row["method"] != "gmres") continue;
    EXPECT_TRUE(row["converged"]);
    EXPECT_GT(row["seconds"]["solve"], 0.0);
    const double error = row["error"]["velocity_l2"];
    if (row["refine"] > 1) {
      EXPECT_LT(error, 0.5 * coarser) << row;
    }
    coarser = error;
  }
  EXPECT_FALSE(study.contains("as_accurate"));  // none of these meshes is fine enough
  EXPECT_EQ(study["published"]["solves"].back()["seconds"], 8.8);
}

/// In two runs, the first of which has no time for everything.
TEST_F(Study, CornersGoOnWhereTheyWere) {
  const int order = available_orders(3).front();
  const std::string arguments = fmt::format(
      "corners --orders {} --sizes 1e3 --pairs 3 --device cpu --threads 1 --json {}", order, file().string());
  ASSERT_EQ(start(arguments + " --time 1e-9"), 1) << errors();
  EXPECT_NE(output().find("goes on from here"), std::string::npos) << output();
  EXPECT_TRUE(json()["rows"].empty());
  EXPECT_FALSE(json()["complete"]);
  ASSERT_EQ(start(arguments), 0) << errors();
  Json study = json();
  EXPECT_TRUE(study["complete"]);
  int pairs = 0;
  for (const Json& row : study["rows"]) {
    ASSERT_FALSE(row.contains("left_out")) << row;
    for (const char* figure : {"smoothing_step", "cycle", "iteration", "solve", "set_up"}) {
      EXPECT_GT(row["seconds"][figure], 0.0) << row;
      EXPECT_GT(row["over_main_path"][figure], 0.0) << row;
      if (row["changes"].empty()) {
        EXPECT_EQ(row["over_main_path"][figure], 1.0) << row;
      }
    }
    EXPECT_GT(row["coarsest"]["dofs"], 0) << row;
    EXPECT_FALSE(row["bars_hold"]) << row;
    if (row["changes"].size() == 2) ++pairs;
  }
  EXPECT_EQ(pairs, 3);

  // Rows that are there are not measured again, those that are not are.
  const std::size_t rows = study["rows"].size();
  study["rows"][0]["iterations"] = 12345;
  study["rows"].erase(rows - 1);
  std::ofstream(file()) << study;
  ASSERT_EQ(start(arguments), 0) << errors();
  EXPECT_EQ(json()["rows"].size(), rows);
  EXPECT_EQ(json()["rows"][0]["iterations"], 12345);

  study["commit"] = "another";
  std::ofstream(file()) << study;
  EXPECT_EQ(start(arguments), 2);
  EXPECT_NE(errors().find("another"), std::string::npos) << errors();
}

/// A report with a part of the experiments, which goes on where an earlier run ended.
TEST_F(Study, ThePaperInOneReport) {
  const fs::path output = folder() / "paper";
  const std::string command = "paper --quick --device cpu --threads 1 --only iterations_3d --output " + output.string();
  const auto text = [&](const char* name) {
    std::ifstream stream(output / name);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  ASSERT_EQ(start(command), 0) << errors();
  Json content = Json::parse(text("paper.json"));
  Json& rows = content["experiments"]["iterations_3d"];
  ASSERT_FALSE(rows.empty());
  const auto orders = available_orders(3);
  for (const Json& row : rows) {
    const bool built = std::find(orders.begin(), orders.end(), row["order"].get<int>()) != orders.end();
    ASSERT_EQ(row.contains("left_out"), !built) << row;
    if (!built) continue;
    EXPECT_TRUE(row["converged"]) << row;
    EXPECT_GT(row["fractional_iterations"], row["level"] == 2 ? 0.0 : 1.5) << row;
    EXPECT_LT(row["fractional_iterations"], row["order"] == 1 ? 8.0 : 5.0) << row;
  }
  const std::string page = text("report.html");
  EXPECT_NE(page.find("Iterations in three dimensions"), std::string::npos);
  EXPECT_NE(page.find("Cu Cui and Guido Kanschat"), std::string::npos);
  EXPECT_NE(page.find("Computers &amp; Fluids 299 (2025) 106703"), std::string::npos);
  EXPECT_NE(page.find("arXiv:2410.09497"), std::string::npos);
  EXPECT_NE(page.find("<polyline"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos) << "the page must need no other file";
  EXPECT_EQ(page.find("nan"), std::string::npos);
  const std::string table = text("iterations_3d.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + static_cast<std::ptrdiff_t>(rows.size()));

  // Rows that are there are not measured again, those that are not are.
  rows.erase(1);
  rows[0]["iterations"] = 12345;
  std::ofstream(output / "paper.json") << content;
  ASSERT_EQ(start(command), 0) << errors();
  const Json again = Json::parse(text("paper.json"))["experiments"]["iterations_3d"];
  EXPECT_EQ(again.size(), rows.size() + 1);
  EXPECT_EQ(again[0]["iterations"], 12345);

  // A file that is not of this study is not taken up.
  for (const char* field : {"date", "experiments"}) {
    Json part = content;
    part.erase(field);
    std::ofstream(output / "paper.json") << part;
    EXPECT_EQ(start(command), 2);
    EXPECT_NE(errors().find("paper.json' has no `date`"), std::string::npos) << errors();
  }

  // Rows of two runs are not mixed.
  content["commit"] = "another";
  std::ofstream(output / "paper.json") << content;
  EXPECT_EQ(start(command), 2);
  EXPECT_NE(errors().find("another"), std::string::npos) << errors();
}

/// The stored report is what the program makes of the stored rows, on a machine without the GPU that they are of.
TEST_F(Study, TheStoredReportIsOfTheStoredRows) {
  const auto text = [](const fs::path& path) {
    std::ifstream stream(path);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const fs::path stored = SOLENOID_SOURCE_DIR "/docs/results/paper_h200";
  EXPECT_EQ(start("paper --render --output " + folder().string()), 2);
  EXPECT_NE(errors().find("paper.json"), std::string::npos) << errors();
  fs::copy_file(stored / "paper.json", folder() / "paper.json");
  ASSERT_EQ(start("paper --render --output " + folder().string()), 0) << errors();
  int files = 0;
  for (const auto& entry : fs::directory_iterator(stored)) {
    const fs::path name = entry.path().filename();
    EXPECT_TRUE(text(entry.path()) == text(folder() / name))
        << name << " differs: solenoid study paper --render --output docs/results/paper_h200";
    ++files;
  }
  EXPECT_EQ(files, 8);

  const std::string page = text(stored / "report.html");
  EXPECT_EQ(page.find("&lt;float"), std::string::npos) << "a kernel by its name in the code";
  EXPECT_EQ(page.find("_kernel"), std::string::npos) << "a kernel by its name in the code";
  EXPECT_NE(page.find("<div class=\"scroll\""), std::string::npos);
  // On logarithmic axes rates are points: titles belong to markers, and no rectangle is higher than a marker but
  // frames.
  const auto rates = page.find("billion unknowns per second");
  ASSERT_NE(rates, std::string::npos);
  const std::string chart = page.substr(rates, page.find("</svg>", rates) - rates);
  EXPECT_NE(chart.find("<circle"), std::string::npos);
  for (auto at = chart.find("<rect"); at != std::string::npos; at = chart.find("<rect", at + 1)) {
    const std::string element = chart.substr(at, chart.find('>', at) - at);
    EXPECT_TRUE(element.find("height=\"7.2\"") != std::string::npos || element.find("frame") != std::string::npos)
        << element;
  }
  EXPECT_NE(chart.find("<title>solenoid: "), std::string::npos);
}

TEST(Roofline, NamesKernelsByWhatTheyDo) {
  std::ifstream stream(SOLENOID_SOURCE_DIR "/docs/results/cuda_roofline.svg");
  const std::string picture(std::istreambuf_iterator<char>(stream), {});
  EXPECT_NE(picture.find(">residual, fp32</text>"), std::string::npos);
  EXPECT_EQ(picture.find("&lt;"), std::string::npos) << "a kernel by its name in the code";
}

/// The studies are a program of their own, found beside the program whatever it is called by.
TEST_F(Study, AreFoundBesideTheProgram) {
  const fs::path link = folder() / "link";
  fs::create_symlink(SOLENOID_PROGRAM, link);
  EXPECT_EQ(start("--help", link), 0) << errors();
  EXPECT_NE(output().find("solenoid study [OPTIONS]"), std::string::npos) << output();

  const fs::path alone = folder() / "alone";
  fs::copy_file(SOLENOID_PROGRAM, alone);
  EXPECT_EQ(start("iterations", alone), 2);
  EXPECT_NE(errors().find((folder() / "solenoid-studies").string()), std::string::npos) << errors();

  // What is there is given all that follows `study`, as it is.
  std::ofstream(folder() / "solenoid-studies") << "#!/bin/sh\nprintf '<%s>' \"$@\"; cat; exit 7\n";
  fs::permissions(folder() / "solenoid-studies", fs::perms::owner_all);
  std::ofstream(folder() / "in") << "from stdin";
  EXPECT_EQ(start("solve --help '' 'a b' -- --version < " + (folder() / "in").string(), alone), 7) << errors();
  EXPECT_EQ(output(), "<solve><--help><><a b><--><--version>from stdin");
}

TEST_F(Study, WrongListsAreUsageErrors) {
  for (const char* arguments :
       {"iterations --orders 3,x", "iterations --orders 5..3", "iterations --levels ''", "convergence --refine 1..",
        "iterations --levels 0,3", "throughput --orders 99", "convergence --dim 4", "throughput --threads 99999",
        "step104 --device cpu --threads 99999", "iterations --threads -1"}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    EXPECT_FALSE(errors().empty()) << arguments;
    EXPECT_FALSE(fs::exists(file())) << arguments;
  }
}

TEST(Estimate, CountsTheUnknownsOfASolve) {
  Problem problem;
  problem.mesh.cells = {3, 2, 2};
  problem.mesh.refine = 1;
  problem.mesh.holes = {{{1, 0, 0}, {2, 1, 1}}, {{0, 1, 1}, {1, 2, 2}}};
  problem.order = 2;
  problem.force[0] = 1.0;
  for (const SideKind x : {SideKind::velocity, SideKind::periodic, SideKind::outflow}) {
    problem.boundary.sides[0].kind = problem.boundary.sides[1].kind = x;
    problem.boundary.sides[2].kind = SideKind::slip;
    SolverOptions options;
    options.max_iterations = 1;
    EXPECT_EQ(estimate(problem, options).dofs, solve(problem, options).report.dofs) << static_cast<int>(x);
  }
}

}  // namespace
}  // namespace solenoid
