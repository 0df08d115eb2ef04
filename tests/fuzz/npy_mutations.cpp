// Feeds the fuzz target of .npy headers valid ones, cut off at every byte, and with every byte changed to any other.
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

bool read_header(std::string_view text);

namespace {

std::string header(char version, std::string text) {
  text += std::string(64 - (text.size() + 13) % 64, ' ') + '\n';
  std::string result = std::string("\x93NUMPY") + version + '\0';
  for (std::size_t i = 0; i < (version == 1 ? 2 : 4); ++i) result += static_cast<char>(text.size() >> 8 * i & 255);
  return result + text;
}

}  // namespace

int main() {
  std::size_t inputs = 0;
  std::size_t wrong = 0;
  for (const std::string& valid : {header(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4, 5), }"),
                                   header(2, "{'shape': (3L, 4L), 'fortran_order': True, 'descr': \"|b1\"}")}) {
    if (!read_header(valid)) ++wrong;
    for (std::size_t i = 0; i < valid.size(); ++i) {
      if (read_header(std::string_view(valid).substr(0, i))) ++wrong;
      for (int byte = 0; byte < 256; ++byte, ++inputs) {
        std::string changed = valid;
        changed[i] = static_cast<char>(byte);
        read_header(changed);
      }
    }
  }
  std::printf("%zu inputs, %zu read or refused that should not be\n", inputs, wrong);
  return wrong == 0 ? 0 : 1;
}
