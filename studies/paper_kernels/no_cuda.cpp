#include "solenoid/error.hpp"
#include "studies/paper_kernels/paper_kernels.hpp"

namespace solenoid::paper {
namespace {

[[noreturn]] void refuse() {
  throw InputError("this build has no kernels of the paper: it was made without CUDA, or for Python");
}

}  // namespace

std::vector<int> orders() { return {}; }
std::vector<Timing> measure_operator(int, std::int64_t, Real) { refuse(); }
std::vector<Timing> measure_smoother(int, std::int64_t, Real) { refuse(); }
std::vector<Check> check(int, Real) { refuse(); }

}  // namespace solenoid::paper
