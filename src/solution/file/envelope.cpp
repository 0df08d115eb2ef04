#include "solution/file/envelope.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <istream>
#include <vector>

namespace solenoid {
namespace {

constexpr int format_version = 1;

/// The checksum of the bytes [begin, end) after those of `before`.
uLong extend_checksum(std::istream& file, std::int64_t begin, std::int64_t end, uLong before) {
  constexpr std::int64_t piece = 1 << 16;
  std::vector<char> bytes(std::clamp<std::int64_t>(end - begin, 0, piece));
  file.seekg(begin);
  for (std::int64_t at = begin; at < end; at += piece) {
    const auto count = std::min(piece, end - at);
    file.read(bytes.data(), count);
    if (file.gcount() != count) throw std::ios_base::failure("the file ends too early");
    before = crc32(before, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count));
  }
  return before;
}

}  // namespace

std::string text_of(const Envelope& envelope) {
  std::string text = fmt::format(
      "solenoid {}, version {}\nlength {}\ncoefficients {} {} {:016x}\nrest {:08x}\n"
      "This is an HDF5 file, which begins after {} bytes: h5dump and h5py read it.\n"
      "Of the dataset `coefficients`: its place, its bytes, the sum of the CRC-32 of all cells; of all other bytes "
      "that follow: their CRC-32.\n",
      envelope.kind, format_version, envelope.length, envelope.data_offset, envelope.data_bytes, envelope.data_checksum,
      envelope.checksum, Envelope::size);
  text.resize(Envelope::size, ' ');
  text.back() = '\n';
  return text;
}

Opened open_envelope(std::istream& file, std::int64_t length, const std::string& kind) {
  std::string text(Envelope::size, '\0');
  file.read(text.data(), Envelope::size);
  Envelope e{.kind = kind};
  const std::string begin = fmt::format("solenoid {}", kind);
  int found_version = 0;
  const int found =
      !text.starts_with(begin)
          ? 0
          : std::sscanf(text.c_str() + begin.size(),
                        ", version %9d\nlength %18" SCNd64 "\ncoefficients %18" SCNd64 " %18" SCNd64 " %16" SCNx64
                        "\nrest %8" SCNx32,
                        &found_version, &e.length, &e.data_offset, &e.data_bytes, &e.data_checksum, &e.checksum);
  if (found < 1) return {{}, fmt::format("it is not a {} file: expected one that solenoid has saved", kind)};
  if (found_version != format_version) {
    return {{},
            fmt::format("it is of version {} of {} files, this program reads version {}", found_version, kind,
                        format_version)};
  }
  if (found < 6 || file.gcount() != Envelope::size || text != text_of(e)) return {{}, "its first bytes were changed"};
  if (length != e.length) {
    return {{}, fmt::format("it has {} bytes, expected {}: was it cut off?", length, e.length)};
  }
  if (e.data_offset < Envelope::size || e.data_bytes < 0 || e.data_offset > length ||
      e.data_bytes > length - e.data_offset) {
    return {{}, "its coefficients lie outside of it"};
  }
  if (checksum_of_rest(file, e) != e.checksum) return {{}, "its description was changed: the checksum is another"};
  return {e, {}};
}

std::uint32_t checksum_of_rest(std::istream& file, const Envelope& envelope) {
  file.clear();
  uLong checksum = crc32(0, nullptr, 0);
  checksum = extend_checksum(file, Envelope::size, envelope.data_offset, checksum);
  checksum = extend_checksum(file, envelope.data_offset + envelope.data_bytes, envelope.length, checksum);
  return static_cast<std::uint32_t>(checksum);
}

}  // namespace solenoid
