// Feeds the fuzz target every file of a folder and those in it, cut off at every byte: files as an editor or a full
// disk leaves them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int /*argc*/, char** arguments) {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[1])) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::size_t size = 0; size <= text.size(); ++size, ++inputs) {
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), size);
    }
  }
  std::printf("%zu inputs\n", inputs);
  return inputs > 1000 ? 0 : 1;
}
