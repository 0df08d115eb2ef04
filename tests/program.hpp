#pragma once
/// \file
/// The program `solenoid`, run in a folder of its own.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace solenoid {

inline void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

class Program : public testing::Test {
 protected:
  Program() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Program() override { std::filesystem::remove_all(folder_); }

  /// Exit code of `solenoid ARGUMENTS` run in a folder of its own; what it prints is in output() and errors().
  int run(const std::string& arguments) {
    return shell("'" SOLENOID_PROGRAM "' " + arguments + " >out 2>err </dev/null");
  }
  /// Exit code of a command run in that folder.
  int shell(const std::string& command) {
    const int status = std::system(("cd '" + folder_.string() + "' && " + command).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string output() const { return read("out"); }
  [[nodiscard]] std::string errors() const { return read("err"); }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("solenoid_test_" + std::to_string(getpid()));
};

inline const std::string small_cavity = R"([mesh]
cells = [1, 1]
refine = 3
[boundary]
ymax = {velocity = ["16*x^2*(1-x)^2", 0]}
[[probe]]
point = [0.5, 0.5]
[output]
vtu = true
picture = "speed.png"
)";

}  // namespace solenoid
