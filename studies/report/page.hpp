#pragma once
/// \file
/// An HTML page in one file: text, tables, pictures inside it, legible on a phone and in print.

#include <string>
#include <vector>

namespace solenoid::report {

struct Table {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  ///< of as many cells as the head; the first one of a row is its name
};

/// Built from top to bottom. All texts are plain: what has a meaning in HTML is escaped.
class Page {
 public:
  explicit Page(std::string title);

  void heading(const std::string& text);
  void text(const std::string& text);
  /// Something to be seen at once: what was not run, or not reached.
  void remark(const std::string& text);
  void table(const Table& table);
  void figure(const std::string& svg, const std::string& caption);

  [[nodiscard]] std::string html() const;

 private:
  std::string title_;
  std::string contents_;
  std::string body_;
  int headings_ = 0;
};

}  // namespace solenoid::report
