#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "image/array_file.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

/// The literal of a dict as numpy.lib.format writes it: {'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : left_(text) {}

  void read(NpyHeader& header) {
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(has_descr, true)) {
        header.type = type();
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header.shape = shape();
      } else {
        fail("another key, or one twice");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!left_.empty()) fail("something after the end");
    if (!has_descr || !has_order || !has_shape) fail("not all of the keys");
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw InputError(fmt::format("the header has {}: expected the keys `descr`, `fortran_order` and `shape`", what));
  }

  void skip_space() { left_.remove_prefix(std::min(left_.find_first_not_of(" \n"), left_.size())); }
  bool accept(char c) {
    skip_space();
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("no `{}` where it should be", c));
  }
  std::string_view quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const auto end = left_.find(quote);
    if (end == std::string_view::npos) fail("a text without end");
    const std::string_view text = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!left_.starts_with(word)) continue;
      left_.remove_prefix(word.size());
      return value;
    }
    fail("no True or False for `fortran_order`");
  }
  NumberType type() {
    skip_space();
    if (left_.starts_with('[')) throw InputError("the array is one of records: expected one of numbers");
    const std::string_view name = quoted();
    constexpr std::array<std::pair<std::string_view, NumberType>, 13> names{{{"|b1", NumberType::uint8},
                                                                             {"|i1", NumberType::int8},
                                                                             {"|u1", NumberType::uint8},
                                                                             {"<i1", NumberType::int8},
                                                                             {"<u1", NumberType::uint8},
                                                                             {"<i2", NumberType::int16},
                                                                             {"<u2", NumberType::uint16},
                                                                             {"<i4", NumberType::int32},
                                                                             {"<u4", NumberType::uint32},
                                                                             {"<i8", NumberType::int64},
                                                                             {"<u8", NumberType::uint64},
                                                                             {"<f4", NumberType::float32},
                                                                             {"<f8", NumberType::float64}}};
    for (const auto& [word, type] : names) {
      if (word == name) return type;
    }
    throw InputError(
        fmt::format("the type of its numbers is '{:.20}': expected bool, integers or floating-point numbers "
                    "of 4 or 8 bytes, in little endian",
                    name));
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), extent);
      if (error != std::errc() || extent < 0) fail("no list of sizes for `shape`");
      left_.remove_prefix(end - left_.data());
      accept('L');  // of Python 2
      result.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::string_view left_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text) {
  using namespace std::string_view_literals;
  constexpr std::string_view magic = "\x93NUMPY"sv;
  if (!text.starts_with(magic) || text.size() < magic.size() + 2) throw InputError("it is no .npy file");
  const auto byte = [&](std::size_t i) { return static_cast<std::int64_t>(static_cast<unsigned char>(text[i])); };
  const std::int64_t version = byte(6);
  if (version < 1 || version > 3) throw InputError(fmt::format("it is of version {}: expected 1 to 3", version));
  const std::size_t begin = version == 1 ? 10 : 12;
  if (text.size() < begin) throw InputError("its header was cut off");
  std::int64_t length = 0;
  for (std::size_t i = begin; i > 8; --i) length = 256 * length + byte(i - 1);
  NpyHeader header;
  header.bytes = static_cast<std::int64_t>(begin) + length;
  if (header.bytes > longest_npy_header) throw InputError(fmt::format("its header has {} bytes", header.bytes));
  if (std::ssize(text) < header.bytes) throw InputError("its header was cut off");
  HeaderText(text.substr(begin, length)).read(header);
  return header;
}

}  // namespace solenoid
