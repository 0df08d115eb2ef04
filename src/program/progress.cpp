#include "program/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace solenoid::program {
namespace {

constexpr const char* clear_line = "\r\033[K";

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79U;
}

std::string time_left(double elapsed, double fraction) {
  constexpr double long_work = 3.0;  // seconds
  constexpr double smallest_fraction = 0.02;
  if (elapsed < long_work || fraction < smallest_fraction || fraction >= 1.0) return "";
  const auto left = std::lround(elapsed * (1.0 - fraction) / fraction);
  return left < 60 ? fmt::format(", about {} s left", left)
                   : fmt::format(", about {} min {} s left", left / 60, left % 60);
}

}  // namespace

ProgressDisplay::ProgressDisplay(Lines lines)
    : lines_(lines), terminal_(lines != Lines::all && isatty(STDERR_FILENO) != 0) {}

double ProgressDisplay::elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void ProgressDisplay::show(const Progress& progress) {
  if (lines_ == Lines::none) return;
  if (progress.stage != last_.stage) {
    finish();
    start_ = Clock::now();
  }
  const bool is_new = progress.text != last_.text;
  last_ = progress;
  const double seconds = elapsed();
  if (lines_ == Lines::all && is_new) {
    fmt::print(stderr, "{:8} {:8.2f} s   {}\n", progress.stage, seconds, progress.text);
  }
  if (!terminal_) return;
  const auto line = fmt::format("{:8} {:8.2f} s   {}{}", progress.stage, seconds, progress.text,
                                time_left(seconds, progress.fraction));
  fmt::print(stderr, "{}{}", clear_line, line.substr(0, terminal_width()));
  std::fflush(stderr);
}

void ProgressDisplay::clear() const {
  if (!terminal_ || last_.stage.empty()) return;
  fmt::print(stderr, "{}", clear_line);
  std::fflush(stderr);
}

void ProgressDisplay::warn(const std::string& text) {
  if (lines_ == Lines::none) return;
  clear();
  fmt::print(stderr, "solenoid: {}\n", text);
}

std::string ProgressDisplay::latest() const { return last_.stage + (last_.text.empty() ? "" : ": " + last_.text); }

void ProgressDisplay::finish() {
  if (last_.stage.empty()) return;
  if (lines_ == Lines::transient) {
    clear();
    last_ = {};
    return;
  }
  // The text of an unfinished step says nothing about the stage as a whole.
  const bool says_result = lines_ != Lines::all && last_.fraction >= 1.0 && !last_.text.empty();
  fmt::print(stderr, "{}{:8} {:8.2f} s{}\n", terminal_ ? clear_line : "", last_.stage, elapsed(),
             says_result ? "   " + last_.text : "");
  last_ = {};
}

}  // namespace solenoid::program
