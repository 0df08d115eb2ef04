#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "program/commands.hpp"
#include "solenoid/error.hpp"

namespace solenoid::program {

namespace fs = std::filesystem;

/// The studies are a program of their own, beside this one: who solves need not load what they compare with.
void start_studies(char** arguments) {
  std::string program = (fs::read_symlink("/proc/self/exe").parent_path() / "solenoid-studies").string();
  std::vector<char*> argv{program.data()};
  do {
    argv.push_back(*arguments);
  } while (*arguments++ != nullptr);
  execv(program.c_str(), argv.data());
  if (errno != ENOENT) throw InputError(fmt::format("cannot start '{}': {}", program, std::strerror(errno)));
  throw InputError(
      fmt::format("the studies are a program of their own, which is not there: '{}'. Build the target "
                  "`solenoid_studies` in the same build folder, or install it beside this program",
                  program));
}

}  // namespace solenoid::program
