// Fuzz target of the readers of solution files and of checkpoints: any file gives a solution or a checkpoint, an
// InputError or a ResourceError, nothing else. How to run it: docs/building.md.
//
// An input that begins with 0 is a file as it is. Its checksum is wrong then, mostly, and that is what is tested. Of
// any other input the bytes after the first say what is wrong with a file that the HDF5 library writes and whose
// checksum is right: zeros, and all after the end, stand for nothing. It is a solution if the first byte is odd, and
// otherwise a checkpoint with averages.
#include <hdf5.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "mesh/grid.hpp"
#include "solenoid/checkpoint.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"
#include "solution/file/envelope.hpp"

namespace {

using solenoid::Envelope;
namespace fs = std::filesystem;

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  std::uint8_t next() { return left_ == 0 ? 0 : (--left_, *at_++); }
  // One of what there is, mostly the first.
  int choice(int count) { return next() % 16 < 12 ? 0 : next() % count; }
  template <class T>
  T value() {
    T result{};
    for (std::size_t i = 0; i < sizeof(T); ++i) reinterpret_cast<std::uint8_t*>(&result)[i] = next();
    return result;
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

// A file of a problem in 2D with 2 x 1 coarse boxes, the first of which is a hole, refined once, of order 1; a
// checkpoint of two states and averages. All coefficients are zero.
class File {
 public:
  File(const fs::path& path, bool checkpoint, Bytes& bytes) : bytes_(bytes), checkpoint_(checkpoint) {
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(creation, Envelope::size);
    file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    H5Pclose(creation);
    write();
    H5Fclose(file_);
    seal(path);
  }

 private:
  void write() {
    if (group("problem")) {
      text("equation", bytes_.choice(2) == 0 ? "stokes" : "poisson");
      number<int>("dimension", 2);
      number<int>("order", 1);
      number<double>("viscosity", 1.0);
      number<double>("mass", 0.0);
      H5Gclose(group_);
    }
    if (group("mesh")) {
      numbers<double>("lower", {0.0, 0.0});
      numbers<double>("upper", {2.0, 1.0});
      numbers<int>("cells", {2, 1});
      number<int>("refine", 1);
      const std::vector<int> boxes{0, 0, 1, 1};
      dataset("holes", H5T_STD_I32LE, H5T_NATIVE_INT, {1, 2, 2}, boxes.data(), boxes.size());
      H5Gclose(group_);
    }
    if (group("boundary")) {
      for (const char* side : {"xmin", "xmax", "ymin", "ymax", "holes"}) {
        text(side, std::vector{"velocity", "slip", "outflow", "periodic", "value"}[bytes_.choice(5)]);
      }
      if (bytes_.choice(4) != 0) kinds("ymax_boxes", 2);
      if (bytes_.choice(4) != 0) kinds("holes_each", 1);
      H5Gclose(group_);
    }
    std::vector<hsize_t> solution{3, 5, 12};
    if (checkpoint_) {
      if (group("time")) {
        number<int>("steps", 7);
        number<int>("states", states);
        numbers<double>("times", {0.3, 0.2});
        numbers<double>("lengths", {0.1, 0.1});
        numbers<double>("gradients", {0.5, 0.0, 0.0, 0.4, 0.0, 0.0});
        const std::string note = "as it was";
        dataset("note", H5T_STD_U8LE, H5T_NATIVE_UCHAR, {note.size()}, note.data(), note.size());
        const std::string set = "force ";
        dataset("set", H5T_STD_U8LE, H5T_NATIVE_UCHAR, {set.size()}, set.data(), set.size());
        H5Gclose(group_);
      }
      if (group("averages")) {
        number<double>("start", 0.1);
        number<double>("length", 0.2);
        zeros("mean", solution);
        zeros("moments", {4, 2, 4, 4});
        H5Gclose(group_);
      }
      solution.insert(solution.begin(), states);
    }
    group_ = file_;
    zeros("coefficients", solution);
  }

  void kinds(const char* name, std::size_t count) {
    std::vector<std::uint8_t> numbers(count);
    for (auto& number : numbers) number = bytes_.next() % 4;  // there are three
    dataset(name, H5T_STD_U8LE, H5T_NATIVE_UCHAR, {count}, numbers.data(), count);
  }

  void zeros(const char* name, const std::vector<hsize_t>& shape) {
    hsize_t count = 1;
    for (const hsize_t extent : shape) count *= extent;
    const std::vector<double> values(count);
    dataset(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, shape, values.data(), count);
  }

  // True if there is such a group, in `group_`.
  bool group(const char* name) {
    switch (bytes_.choice(5)) {
      case 1: return false;
      case 2: H5Lcreate_soft("/elsewhere", file_, name, H5P_DEFAULT, H5P_DEFAULT); return false;
      case 3: H5Lcreate_external("/etc/passwd", "/", file_, name, H5P_DEFAULT, H5P_DEFAULT); return false;
      case 4: {
        group_ = file_;
        const int value = 0;
        dataset(name, H5T_STD_I32LE, H5T_NATIVE_INT, {1, 1, 1}, &value, 1);
        return false;
      }
      default: group_ = H5Gcreate2(file_, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT); return group_ >= 0;
    }
  }

  void attribute(hid_t object, const char* name, hid_t type, hid_t memory, hid_t space, const void* value) {
    const hid_t id = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (id >= 0) {
      H5Awrite(id, memory, value);
      H5Aclose(id);
    }
    H5Sclose(space);
  }
  void text(const char* name, std::string value) {
    const int wrong = bytes_.choice(6);
    if (wrong == 1) return;
    if (wrong == 2) return number<int>(name, bytes_.next());
    if (wrong == 3) value.resize(bytes_.next() + 1, 'x');
    if (wrong == 4) {
      for (char& letter : value) letter = static_cast<char>(letter ^ bytes_.next());
    }
    const hid_t type = H5Tcopy(H5T_C_S1);
    const char* pointer = value.c_str();
    H5Tset_size(type, wrong == 5 ? H5T_VARIABLE : value.size());
    attribute(group_, name, type, type, H5Screate(H5S_SCALAR),
              wrong == 5 ? static_cast<const void*>(&pointer) : static_cast<const void*>(pointer));
    H5Tclose(type);
  }
  template <class T>
  void number(const char* name, T value) {
    numbers<T>(name, {value}, true);
  }
  template <class T>
  void numbers(const char* name, std::vector<T> values, bool scalar = false) {
    const bool integer = sizeof(T) == sizeof(int);
    hid_t type = integer ? H5T_STD_I32LE : H5T_IEEE_F64LE;
    switch (bytes_.choice(7)) {
      case 1: return;
      case 2: type = integer ? H5T_STD_I64LE : H5T_IEEE_F32LE; break;
      case 3: type = integer ? H5T_STD_I32BE : H5T_IEEE_F64BE; break;
      case 4: scalar = !scalar; break;
      case 5: values.resize(bytes_.next() % 5 + 1); break;
      case 6:
        for (T& value : values) value = bytes_.value<T>();
        break;
      default: break;
    }
    const hsize_t count = values.size();
    attribute(group_, name, type, integer ? H5T_NATIVE_INT : H5T_NATIVE_DOUBLE,
              scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr), values.data());
  }

  void dataset(const char* name, hid_t type, hid_t memory, std::vector<hsize_t> shape, const void* values,
               std::size_t count) {
    const int wrong = bytes_.choice(12);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    const std::vector<hsize_t> chunk(shape.size(), 1);
    bool write = true;
    switch (wrong) {
      case 1: H5Pclose(properties); return;
      case 2: type = H5T_IEEE_F32LE; break;
      case 3: type = type == H5T_STD_I32LE ? H5T_STD_I32BE : H5T_IEEE_F64BE; break;
      case 4: H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data()); break;
      case 5:
        H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
        H5Pset_fletcher32(properties);
        break;
      case 6: H5Pset_layout(properties, H5D_COMPACT); break;
      case 7:
        H5Pset_external(properties, "/etc/passwd", 0, H5F_UNLIMITED);
        write = false;
        break;
      case 8:
        for (hsize_t& extent : shape) extent = bytes_.next() % 8;
        write = false;
        break;
      case 9:
        shape.resize(bytes_.next() % 6 + 1, 1);
        write = false;
        break;
      case 10: {
        const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
        H5Pset_virtual(properties, space, "/etc/passwd", "data", space);
        H5Sclose(space);
        write = false;
        break;
      }
      case 11: H5Lcreate_external("/etc/passwd", "data", group_, name, H5P_DEFAULT, H5P_DEFAULT); break;
      default: break;
    }
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t id = H5Dcreate2(group_, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    if (id >= 0) {
      if (write && count > 0) H5Dwrite(id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
      if (std::strcmp(name, "coefficients") == 0) {
        envelope_.data_checksum = bytes_.choice(2) == 0 ? checksum_of_zeros() : bytes_.value<std::uint64_t>();
        const haddr_t offset = H5Dget_offset(id);
        envelope_.data_offset = offset == HADDR_UNDEF ? Envelope::size : static_cast<std::int64_t>(offset);
        envelope_.data_bytes = static_cast<std::int64_t>(H5Dget_storage_size(id));
      }
      H5Dclose(id);
    }
    H5Sclose(space);
    H5Pclose(properties);
  }

  void seal(const fs::path& path) {
    if (checkpoint_) envelope_.kind = "checkpoint";
    if (bytes_.choice(2) != 0) envelope_.data_offset += bytes_.next();
    envelope_.length = static_cast<std::int64_t>(fs::file_size(path));
    std::ifstream written(path, std::ios::binary);
    try {
      envelope_.checksum = checksum_of_rest(written, envelope_);
    } catch (const std::ios_base::failure&) {
    }
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << text_of(envelope_);
  }

  // docs/solution-file.md: of every place its number and 12 zeros, through all states.
  [[nodiscard]] std::uint64_t checksum_of_zeros() const {
    std::uint64_t sum = 0;
    for (int place = 0; place < (checkpoint_ ? states : 1) * 3 * 5; ++place) {
      std::array<unsigned char, 8 + 12 * sizeof(double)> bytes{static_cast<unsigned char>(place)};
      sum += crc32(0, bytes.data(), bytes.size());
    }
    return sum;
  }

  static constexpr int states = 2;

  Bytes& bytes_;
  bool checkpoint_;
  hid_t file_ = -1;
  hid_t group_ = -1;
  Envelope envelope_{.data_offset = Envelope::size};
};

// Whether `load` reads the file, and what was read can be evaluated.
template <class Load>
bool reads(const Load& load, const fs::path& path) {
  try {
    load(path);
    return true;
  } catch (const solenoid::InputError&) {
  } catch (const solenoid::ResourceError&) {
  }
  return false;
}

const std::vector<solenoid::Point> points{{0.25, 0.5, 0.75}, {1.5, 0.5, 0.0}};

void evaluate_solution(const fs::path& path) { (void)solenoid::load_solution(path).pressure(points); }

void evaluate_checkpoint(const fs::path& path) {
  const solenoid::Checkpoint checkpoint = solenoid::load_checkpoint(path);
  for (const auto& state : checkpoint.states) (void)state.flow.pressure(points);
  if (!checkpoint.averages) return;
  (void)checkpoint.averages->flow.pressure(points);
  (void)checkpoint.averages->dissipation.value(points);
  (void)checkpoint.averages->stress(points);
}

}  // namespace

// Whether it is read, as a solution or as a checkpoint.
bool read_file(const std::uint8_t* data, std::size_t size) {
  static const fs::path path = [] {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const fs::path memory = "/dev/shm";
    return (fs::exists(memory) ? memory : fs::temp_directory_path()) /
           ("solenoid_fuzz_" + std::to_string(getpid()) + ".h5");
  }();
  if (size == 0) return false;
  if (*data == 0) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data + 1), std::ptrdiff_t(size) - 1);
  } else {
    Bytes bytes(data + 1, size - 1);
    File(path, *data % 2 == 0, bytes);
  }
  const bool solution = reads(evaluate_solution, path);
  const bool checkpoint = reads(evaluate_checkpoint, path);
  fs::remove(path);
  return solution || checkpoint;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_file(data, size);
  return 0;
}
