#pragma once
/// \file
/// The discrete problem as linear algebra, for Krylov methods, eigensolvers and time steppers of your own.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "solenoid/problem.hpp"
#include "solenoid/solution.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

/// How LinearSystem::solve() went.
struct LinearReport {
  bool converged = false;
  std::string reason;
  int iterations = 0;
  std::vector<double> residual_history;  ///< norms relative to that of b (left: of M times them), the initial one first
};

/// The linear system A x = b of a problem, and the preconditioner M of solve() for it.
///
/// With the Stokes equations A is symmetric and indefinite,
///
///     (A x)_u = A_u u - B^T p,   (A x)_p = -B u,   B = div,
///
/// with Poisson's equation positive (semi)definite. M approximates the inverse of A: it is one multigrid cycle, in
/// options.precision inside. It is linear, but not symmetric, and rounds to that precision; on a mesh whose coarsest
/// level has to be solved by an inner GMRES it changes a little with its argument, as flexible methods allow.
///
/// A vector is an array of size() doubles in the device's memory: one record of (dim + 1) (k + 1)^dim numbers per cell
/// (with Poisson's equation (k + 1)^dim), 16 records side by side, so that value i of record r lies at
///
///     r / 16 * 16 * record + r % 16 + 16 i      (docs/method.md: what the values of a record are).
///
/// A vector has more numbers than there are unknowns: normal velocities that boundary conditions prescribe, padding of
/// the last block, and a block of zeros that stands for cells that are not there. These numbers are zero in every
/// vector that is passed in, and are zero in every vector that comes out; sums and multiples of vectors keep that.
/// unknowns() lists the others, for whoever fills vectors otherwise. Norms are Euclidean, those of solve() too.
///
/// pack() puts the unknowns one after the other, without any other number, in an order that depends on the mesh alone
/// (docs/method.md, "Vectors"). That is how Python sees vectors, and what Solution::unknowns() returns.
///
/// If constants are in the kernel of A (the pressure's without an outflow side, for example) they are removed from
/// load(), from results of M and from solution().
///
/// With several ranks (options.communicator) a vector is that of this rank: its unknowns, and records around them that
/// belong to others, which mean nothing between two calls. pack() and unknowns() have those of this rank alone, in the
/// order of their places among its cells. All ranks call the same functions in the same order, but for copy(), axpy(),
/// scale(), pack(), unpack(), upload(), download(), make_vector() and what says how large something is. apply() and
/// others that read x or b bring what they need into the records around, so that vectors are memory that may be
/// written. dot() and norms are of all ranks.
///
/// Functions take pointers to the device's memory: to that of the host on the CPU, of any alignment; on a GPU to that
/// of the GPU, aligned to 128 bytes. On a GPU they only start the work, in the order of stream(). Not to be called from
/// several threads at a time.
class LinearSystem {
 public:
  /// Method, tolerance and so on are those of solve(); progress is told of the set-up. \throws InputError for wrong
  /// input, for full multigrid, which no vector b has the loads of all levels for, and on several ranks for a mesh of
  /// so few cells that each rank has all; ResourceError if device or memory do not suffice for all but solve().
  explicit LinearSystem(const Problem& problem, const SolverOptions& options = {});
  LinearSystem(LinearSystem&&) noexcept;
  LinearSystem& operator=(LinearSystem&&) noexcept;
  LinearSystem(const LinearSystem&) = delete;
  LinearSystem& operator=(const LinearSystem&) = delete;
  ~LinearSystem();

  [[nodiscard]] const Problem& problem() const;
  [[nodiscard]] std::int64_t size() const;                   ///< numbers in a vector
  [[nodiscard]] std::int64_t dofs() const;                   ///< unknowns among them, those of this rank
  [[nodiscard]] std::int64_t dofs_of_all() const;            ///< of all ranks
  [[nodiscard]] std::vector<std::int64_t> unknowns() const;  ///< their places in a vector, in the order of pack()
  [[nodiscard]] std::string device() const;                  ///< for people: "cpu, 2 threads, AVX2"
  [[nodiscard]] bool on_gpu() const;                         ///< whether vectors live in the memory of a GPU
  [[nodiscard]] std::int64_t memory_bytes() const;           ///< what the system and make_vector() have allocated

  /// The most that was allocated at a time, with the levels where the host solves.
  [[nodiscard]] std::int64_t peak_memory_bytes() const;

  /// Another mass term alpha, or another viscosity nu, from now on: of A, M, load(), solution() and problem(). Vectors
  /// stay what they are. Nothing that depends on the mesh alone is made again. Numbers, what is made of which is kept
  /// for the last 8 pairs, so that one that was there before takes less than a cycle: a new one takes as long as
  /// solving the local problems of all kinds of patches and inverting the coarsest level. Where coefficients of the
  /// problem vary by cell, fields as Problem::varying_viscosity and varying_mass are, such as those of cellwise(),
  /// which hold in regions too; they take less than a cycle, and the inverse of the coarsest level.
  /// \throws InputError for values that no problem can have; for a reaction that comes or goes where no side holds
  /// constants or rotations; and for fields that vary where the problem was set up with constant coefficients, or
  /// without a word on the form of its viscous term, which would be another one. ResourceError. Nothing is changed
  /// then.
  void set_reaction(const ScalarField& mass);
  void set_viscosity(const ScalarField& viscosity);
  void set_coefficients(const ScalarField& viscosity, const ScalarField& mass);

  /// Other values of parameters of expressions, such as the time, from now on: of load(), solution() and problem(), and
  /// of A and M where coefficients depend on them. Those that are not named keep theirs. What follows from boundary
  /// data is computed anew by the next load(). \throws InputError as with_parameters, and if it would change where a
  /// condition holds. Nothing is changed then.
  void set_parameters(const Parameters& values);

  /// y = A x; x and y are different vectors.
  void apply(const double* x, double* y);
  /// z = M r; may be in place.
  void precondition(const double* r, double* z);
  /// Solves A x = b by the method of the options, beginning from x = 0 or, with `from_x`, from what x holds. Constants
  /// that A maps to zero are removed from b and x. Allocates memory the first time, and no more after that as long as
  /// the method does not need more iterations than expected. \throws ResourceError if memory does not suffice,
  /// Interrupted.
  LinearReport solve(const double* b, double* x, bool from_x = false, std::optional<double> rtol = {});
  /// y = dA/dalpha x: (y, v) = (u, v) for all velocities v, with u that of x; nothing for pressures. x and y are
  /// different vectors. With A of a mass term alpha = 1 / dt and b of force and boundary data, an implicit Euler step
  /// is A x' = b + y / dt, if prescribed normal velocities are zero: they are no part of x (load() of a force u / dt
  /// has them).
  void apply_mass(const double* x, double* y);
  /// b = the load vector of force, boundary velocities and tractions. \throws InputError where a field is not finite,
  /// or if the problem has no solution.
  void load(double* b);
  /// The same with another force. What boundary data add is computed once.
  void load(double* b, const VectorField& force);
  /// The solution of the problem whose coefficients, without the prescribed boundary velocities, are x. Waits for the
  /// work that x comes from.
  [[nodiscard]] Solution solution(const double* x);
  /// What that solution has by the same names, without bringing it to the host: integrals of a flow, and how far it is
  /// from the fields that are known. On a GPU they are computed there, but for fields that are functions of the caller.
  /// \throws InputError for Poisson's equation (integrals), or where a known field is not finite.
  [[nodiscard]] FlowIntegrals integrals(const double* x);
  [[nodiscard]] Errors errors(const double* x, const Exact& exact);

  /// values[i] = x[unknowns()[i]] for all dofs() unknowns, both in the device's memory; and back. unpack() leaves all
  /// other numbers of x alone: they are zero in a vector of make_vector(). The first call makes a table, on a GPU of 8
  /// bytes per unknown.
  void pack(const double* x, double* values);
  void unpack(const double* values, double* x);

  // For who has no kernels of their own: where the vectors are, with all threads of a processor.
  void copy(const double* x, double* y);                       ///< y = x
  void axpy(double a, const double* x, double* y);             ///< y += a x
  void scale(double a, double* x);                             ///< x = a x
  [[nodiscard]] double dot(const double* x, const double* y);  ///< waits for both; of all ranks

  /// A vector of zeros in the device's memory, which outlives the system if need be. Those that are released are kept
  /// for the next ones.
  [[nodiscard]] std::shared_ptr<double> make_vector();
  /// Between vectors on the host and on the device; the work that `from` comes from is waited for.
  void upload(std::span<const double> from, double* to);
  void download(const double* from, std::span<double> to);

  // On a GPU all work is in the order of one stream, which is a non-blocking one. Whoever uses vectors in other streams
  // calls wait_for() before, so that what they write there is there, and synchronise() after (or lets their streams
  // wait for an event in stream()).

  /// What is called from now on comes after what is in another cudaStream_t so far (1: the legacy default stream).
  void wait_for(void* stream);
  /// Waits until all results are there. On the CPU they always are.
  void synchronise();
  /// The cudaStream_t of all work, or nullptr on the CPU.
  [[nodiscard]] void* stream() const;

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

}  // namespace solenoid
