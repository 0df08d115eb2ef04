#pragma once
/// \file
/// Files that appear whole or not at all.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "solenoid/error.hpp"

namespace solenoid {

/// The file that writing to `path` makes or replaces: what symbolic links lead to. None for a device or a pipe, which
/// must not be replaced, and for a folder.
inline std::optional<std::filesystem::path> replaced_by(std::filesystem::path path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return std::nullopt;
  constexpr int most_links = 40;  // as many as Linux follows
  for (int i = 0; i < most_links && std::filesystem::is_symlink(path, ignored); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  }
  return path;
}

/// A file written under a temporary name in its folder, and renamed by commit(). Without commit() (an exception on the
/// way) nothing is left behind, and a file of that name from before stays as it was. Links are followed; devices and
/// pipes are written to as they are.
class NewFile {
 public:
  /// \throws Error if the file cannot be created.
  explicit NewFile(const std::filesystem::path& path) : target_(path), temporary_(path) {
    if (const auto replaced = replaced_by(path)) {
      target_ = temporary_ = *replaced;
      temporary_ += ".partial";
    }
    stream_.open(temporary_, std::ios::binary | std::ios::out | std::ios::trunc);
    if (!stream_) fail("create");
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (committed_) return;
    stream_.close();
    if (temporary_ == target_) return;
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }

  [[nodiscard]] std::fstream& stream() { return stream_; }
  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }

  /// What has been written is on the disk, whatever happens to the machine: for files that work goes on from. Before
  /// commit(). \throws Error if not.
  void sync() {
    stream_.flush();
    const int descriptor = stream_ ? open(temporary_.c_str(), O_RDONLY | O_CLOEXEC) : -1;
    const bool done = descriptor >= 0 && (fsync(descriptor) == 0 || errno == EINVAL);  // there are files without
    if (descriptor >= 0) close(descriptor);
    if (!done) fail("write");
  }
  /// \throws Error if not all could be written.
  void commit() {
    stream_.close();
    if (!stream_) fail("write");
    std::error_code error;
    if (temporary_ != target_) std::filesystem::rename(temporary_, target_, error);
    if (error) fail("rename " + temporary_.string() + " to");
    committed_ = true;
  }
  /// \throws Error that an action on the file failed.
  [[noreturn]] void fail(const std::string& action) const {
    std::error_code ignored;
    const std::filesystem::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
    const char* reason = !std::filesystem::is_directory(folder, ignored) ? "its folder does not exist"
                                                                         : "is the folder writable, the disk full?";
    throw Error("cannot " + action + " '" + target_.string() + "': " + reason);
  }

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::fstream stream_;
  bool committed_ = false;
};

}  // namespace solenoid
