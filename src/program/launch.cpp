#include "program/launch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/binding.hpp"
#include "program/command_line.hpp"
#include "solenoid/error.hpp"

namespace solenoid::program {
namespace {

/// Keeps what is printed from now on to itself.
class Silence {
 public:
  Silence() : said_(std::tmpfile(), std::fclose), stderr_(dup(STDERR_FILENO)) {
    if (said_ == nullptr || stderr_ < 0) return;
    std::fflush(stderr);
    dup2(fileno(said_.get()), STDERR_FILENO);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) return;  // then it is heard
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() { end(); }

  /// Errors are printed again from here on; returns those that were not.
  std::string end() {
    if (stderr_ < 0 || said_ == nullptr) return {};
    std::fflush(stderr);
    dup2(stderr_, STDERR_FILENO);
    close(stderr_);
    stderr_ = -1;
    std::string text;
    std::rewind(said_.get());
    for (int c = std::fgetc(said_.get()); c != EOF; c = std::fgetc(said_.get())) text += static_cast<char>(c);
    return text;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> said_;
  int stderr_;
};

}  // namespace

int run_as_ranks(const std::function<int()>& program) {
  std::shared_ptr<const Communicator> ranks;
  try {
    ranks = launched_ranks();
  } catch (const Error& error) {
    fmt::print(stderr, "solenoid: {}\n", error.what());
    return resource_failure;
  }
  if (ranks == nullptr) return program();
  std::unique_ptr<Silence> silence;
  if (ranks->rank() != 0) silence = std::make_unique<Silence>();
  const int code = program();
  constexpr double patience = 5.0;  // seconds
  if (code == 0 || ranks->all_arrive(patience)) return code;
  const std::string said = silence == nullptr ? "" : silence->end();
  fmt::print(stderr, "solenoid: rank {} of {}, on {}, ended alone, and all others with it{}{}", ranks->rank(),
             ranks->size(), ranks->host(), said.empty() ? "" : ":\n", said);
  std::fflush(stderr);
  ranks->abort(code);
  return code;
}

void warn_of_binding(const Communicator& ranks, int threads, bool quiet) {
  const std::string warning = too_narrow_binding(ranks, threads);
  if (ranks.rank() == 0 && !quiet && !warning.empty()) fmt::print(stderr, "solenoid: {}\n", warning);
}

}  // namespace solenoid::program
