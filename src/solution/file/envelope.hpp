#pragma once
/// \file
/// The first bytes of a file of solutions, which HDF5 leaves to its users ("user block"): how long the file is, where
/// its coefficients lie, and the checksum of all the rest. It is looked at before the HDF5 library is, so that the
/// library gets to read nothing but what it has written.

#include <cstdint>
#include <iosfwd>
#include <string>

namespace solenoid {

struct Envelope {
  static constexpr std::int64_t size = 512;  ///< what HDF5 leaves at least

  std::string kind = "solution";  ///< of the file
  std::int64_t length = 0;        ///< of the file
  std::int64_t data_offset = 0;   ///< of the coefficients
  std::int64_t data_bytes = 0;
  std::uint64_t data_checksum = 0;
  std::uint32_t checksum = 0;  ///< CRC-32 of what is neither coefficients nor envelope

  bool operator==(const Envelope&) const = default;
};

/// `Envelope::size` bytes.
std::string text_of(const Envelope& envelope);

/// The envelope of a file of this length, or what is wrong with it: of another kind or version, cut off, changed. Reads
/// the file in pieces, and no coefficients.
struct Opened {
  Envelope envelope;
  std::string problem;  ///< empty: none
};
Opened open_envelope(std::istream& file, std::int64_t length, const std::string& kind = "solution");

/// CRC-32 of what the envelope has a checksum of. \throws std::ios_base::failure if the file ends before
std::uint32_t checksum_of_rest(std::istream& file, const Envelope& envelope);

}  // namespace solenoid
