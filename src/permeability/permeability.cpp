#include "solenoid/permeability.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/agreement.hpp"
#include "image/connectivity.hpp"
#include "permeability/flow_setup.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/linear_system.hpp"

namespace solenoid {
namespace {

using Clock = std::chrono::steady_clock;

double elapsed_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// PermeabilityFlow::flux_deviation
double flux_deviation(const Solution& flow, int direction) {
  const std::vector<double> through = plane_fluxes(flow, direction);
  double mean = 0.0;
  for (const double flux : through) mean += flux / static_cast<double>(through.size());
  double largest = 0.0;
  for (const double flux : through) largest = std::max(largest, std::abs(flux - mean));
  return mean == 0.0 ? 0.0 : largest / std::abs(mean);
}

/// The entries that both have.
double norm_of_difference(const DiscretePermeability& one, const DiscretePermeability* other) {
  double square = 0.0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const double subtracted = other == nullptr ? 0.0 : other->tensor[i][j].value_or(0.0);
      square += std::pow(one.tensor[i][j].value_or(0.0) - subtracted, 2);
    }
  }
  return std::sqrt(square);
}

/// |difference| / |size|, if there is something to compare with.
double relative(double difference, double size) { return size == 0.0 ? 0.0 : difference / size; }

/// Puts its symmetric part in place of a whole tensor.
void symmetrise(int dim, DiscretePermeability& value) {
  double square = 0.0;
  for (int i = 0; i < dim; ++i) {
    for (int j = 0; j < dim; ++j) {
      if (!value.tensor[i][j] || !value.tensor[j][i]) return;
      square += std::pow(*value.tensor[i][j] - *value.tensor[j][i], 2);
    }
  }
  value.asymmetry = relative(std::sqrt(square), norm_of_difference(value, nullptr));
  for (int i = 0; i < dim; ++i) {
    for (int j = 0; j < i; ++j) {
      value.tensor[i][j] = value.tensor[j][i] = 0.5 * (*value.tensor[i][j] + *value.tensor[j][i]);
    }
  }
}

std::optional<PrincipalPermeabilities> principal_of(int dim, const DiscretePermeability& value) {
  if (!value.asymmetry) return {};
  Eigen::MatrixXd tensor(dim, dim);
  for (int i = 0; i < dim; ++i) {
    for (int j = 0; j < dim; ++j) tensor(i, j) = *value.tensor[i][j];
  }
  // Scaled: permeabilities in square metres are so small that their products are not numbers to rely on.
  const double scale = std::max(tensor.cwiseAbs().maxCoeff(), 1e-300);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(tensor / scale);
  PrincipalPermeabilities result;
  for (int i = dim - 1; i >= 0; --i) {
    result.values.push_back(scale * solver.eigenvalues()[i]);
    Point& axis = result.axes.emplace_back();
    for (int a = 0; a < dim; ++a) axis[a] = solver.eigenvectors()(a, i);
  }
  return result;
}

std::string text_of(const FlowElement& element) {
  std::string name = element.lumped ? "marker and cell" : fmt::format("RT_{}", element.order);
  if (element.refine > 0) name += fmt::format(", refined {}x", element.refine);
  return name;
}

class Computation {
 public:
  Computation(std::shared_ptr<const VoxelImage> image, const PermeabilityOptions& options, const SolverOptions& solver)
      : image_(std::move(image)), options_(options), solver_(solver), dim_(image_->dim()) {}

  Permeability run() {
    result_.dim = dim_;
    result_.porosity = image_->porosity();
    add(element_of(options_), result_.value);
    const bool has_mac = available_orders(dim_).front() == 0;
    if (options_.mac && options_.order >= 1 && has_mac) add({0, true, options_.refine}, result_.mac.emplace());
    if (options_.error != ErrorCheck::none) add(finer_element(dim_, options_), result_.finer.emplace());
    for (const FlowSetup& setup : flow_setups(dim_, options_)) add_flows(setup);
    for (const auto& [element, value] : elements_) symmetrise(dim_, *value);
    if (result_.finer) {
      result_.error =
          relative(norm_of_difference(result_.value, &*result_.finer), norm_of_difference(*result_.finer, nullptr));
    }
    result_.principal = principal_of(dim_, result_.value);
    return std::move(result_);
  }

 private:
  void add(const FlowElement& element, DiscretePermeability& value) {
    value.order = element.order;
    value.lumped = element.lumped;
    value.refine = element.refine;
    elements_.emplace_back(element, &value);
  }

  /// The flows of a set-up, by all elements.
  void add_flows(FlowSetup setup) {
    tell("connected pores");
    const Connectivity connectivity(*image_, setup.periodic);
    const std::array<bool, 3> percolates = connectivity.percolates();
    std::array<bool, 3> wanted{};
    for (const int direction : setup.directions) wanted[direction] = true;
    const auto image = std::make_shared<const VoxelImage>(connectivity.keep_flowing(wanted));
    const double throats =
        relative(static_cast<double>(throat_voxels(*image, setup.periodic)), static_cast<double>(image->pores()));
    for (const int direction : setup.directions) {
      result_.pores.push_back({.direction = direction,
                               .percolates = percolates[direction],
                               .components = std::ssize(connectivity.components()),
                               .porosity = image->porosity(),
                               .throats = throats});
      for (const auto& [element, value] : elements_) set_column(*value, direction, {});  // until it is known
    }
    std::erase_if(setup.directions, [&](int direction) { return !percolates[direction]; });
    if (setup.directions.empty()) return;
    for (const auto& [element, value] : elements_) solve(setup, image, element, *value);
  }

  /// A flow, and its mean velocity in lengths of the mesh.
  struct Solved {
    PermeabilityFlow flow;
    Point mean_velocity{};
  };

  /// All flows of a set-up by one element.
  void solve(const FlowSetup& setup, const std::shared_ptr<const VoxelImage>& image, const FlowElement& element,
             DiscretePermeability& value) {
    const Communicator* const ranks = solver_.communicator.get();
    const Problem problem = flow_problem(image, setup, options_.drive, element);
    const bool dealt_out = ranks != nullptr && ranks->size() > 1 && !shared_by_ranks(problem, solver_);
    if (!dealt_out) {
      for (const Solved& solved : solve(setup, solver_.communicator, image, element, value)) add(solved, value);
      return;
    }
    const auto owner = [&](int direction) { return direction % ranks->size(); };
    FlowSetup mine = setup;
    std::erase_if(mine.directions, [&](int direction) { return owner(direction) != ranks->rank(); });
    std::vector<Solved> here;
    in_agreement(ranks, [&] {
      if (!mine.directions.empty()) here = solve(mine, nullptr, image, element, value);
    });
    for (const int direction : setup.directions) add(known_to_all(*ranks, owner(direction), direction, here), value);
    std::array<double, 3> largest{static_cast<double>(value.dofs), value.time_setup,
                                  static_cast<double>(value.memory_bytes)};
    ranks->maximum(largest);
    value.dofs = static_cast<std::int64_t>(largest[0]);
    value.time_setup = largest[1];
    value.memory_bytes = static_cast<std::int64_t>(largest[2]);
    for (const std::string& device : ranks->texts(result_.device)) {
      if (result_.device.empty()) result_.device = device;
    }
  }

  /// The flow along a direction among those that its owner has.
  static Solved known_to_all(const Communicator& ranks, int owner, int direction, const std::vector<Solved>& here) {
    Solved solved;
    if (owner == ranks.rank()) {
      solved = *std::ranges::find(here, direction, [](const Solved& one) { return one.flow.direction; });
    }
    PermeabilityFlow& flow = solved.flow;
    Point& u = solved.mean_velocity;
    std::array<double, 8> numbers{flow.converged ? 1.0 : 0.0,
                                  static_cast<double>(flow.iterations),
                                  flow.residual,
                                  flow.flux_deviation,
                                  flow.time_solve,
                                  u[0],
                                  u[1],
                                  u[2]};
    ranks.sum(std::span(numbers));
    flow = {.direction = direction,
            .converged = numbers[0] != 0.0,
            .reason = ranks.texts(flow.reason)[owner],
            .iterations = static_cast<int>(numbers[1]),
            .residual = numbers[2],
            .flux_deviation = numbers[3],
            .time_solve = numbers[4]};
    u = {numbers[5], numbers[6], numbers[7]};
    return solved;
  }

  /// The same by these ranks together, or by this process.
  std::vector<Solved> solve(const FlowSetup& setup, const std::shared_ptr<const Communicator>& ranks,
                            const std::shared_ptr<const VoxelImage>& image, const FlowElement& element,
                            DiscretePermeability& value) {
    const auto start = Clock::now();
    const std::string name = text_of(element);
    SolverOptions options = flow_options(solver_);
    options.communicator = ranks;
    options.progress = [&](const Progress& progress) {
      tell(fmt::format("{}, set-up{}{}", name, progress.text.empty() ? "" : ": ", progress.text));
    };
    LinearSystem system(flow_problem(image, setup, options_.drive, element), options);
    const auto load = system.make_vector();
    const auto flow = system.make_vector();
    value.dofs = std::max(value.dofs, system.dofs_of_all());
    value.time_setup += elapsed_since(start);
    result_.device = system.device();
    std::vector<Solved> flows;
    for (const int direction : setup.directions) {
      tell(fmt::format("{}, flow along {}", name, "xyz"[direction]));
      const auto start_of_solve = Clock::now();
      if (options_.drive == Drive::force) {
        VectorField force{};
        force[direction] = 1.0;
        system.load(load.get(), force);
      } else {
        system.load(load.get());
      }
      LinearReport report = system.solve(load.get(), flow.get());
      const Solution solution = system.solution(flow.get());
      flows.push_back({{.direction = direction,
                        .converged = report.converged,
                        .reason = std::move(report.reason),
                        .iterations = report.iterations,
                        .residual = report.residual_history.empty() ? 0.0 : report.residual_history.back(),
                        .flux_deviation = flux_deviation(solution, direction),
                        .time_solve = elapsed_since(start_of_solve)},
                       solution.mean_velocity()});
      if (options_.visit && &value == &result_.value) options_.visit(direction, solution);
    }
    value.memory_bytes = std::max(value.memory_bytes, system.peak_memory_bytes());
    return flows;
  }

  void add(const Solved& solved, DiscretePermeability& value) {
    set_column(value, solved.flow.direction, solved.mean_velocity);
    value.flows.push_back(solved.flow);
    ++done_;
  }

  /// What the mean velocity of the flow along a direction, in lengths of the mesh, says of the tensor.
  void set_column(DiscretePermeability& value, int direction, const Point& mean_velocity) const {
    const double area = std::pow(image_->voxel()[0], 2);
    const bool whole = options_.drive == Drive::force && options_.sides == SidesAcross::periodic;
    for (int i = 0; i < dim_; ++i) {
      if (whole || i == direction) value.tensor[i][direction] = mean_velocity[i] * area;
    }
  }

  void tell(std::string text) const {
    if (!solver_.progress) return;
    const auto wanted = std::count(options_.directions.begin(), options_.directions.begin() + dim_, true);
    solver_.progress({"flows", done_ / static_cast<double>(wanted * std::ssize(elements_)), std::move(text)});
  }

  std::shared_ptr<const VoxelImage> image_;
  const PermeabilityOptions& options_;
  const SolverOptions& solver_;
  int dim_;
  Permeability result_;
  std::vector<std::pair<FlowElement, DiscretePermeability*>> elements_;  // of result_
  int done_ = 0;                                                         // flows
};

}  // namespace

bool DiscretePermeability::converged() const {
  return std::all_of(flows.begin(), flows.end(), [](const PermeabilityFlow& flow) { return flow.converged; });
}

bool Permeability::converged() const {
  return value.converged() && (!mac || mac->converged()) && (!finer || finer->converged());
}

Permeability permeability(const std::shared_ptr<const VoxelImage>& image, const PermeabilityOptions& options,
                          const SolverOptions& solver) {
  validate(image, options, solver);
  return Computation(image, options, solver).run();
}

}  // namespace solenoid
