#include "studies/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "studies/report/svg.hpp"

namespace solenoid::report {
namespace {

constexpr const char* style = R"(
body { font: 16px/1.5 sans-serif; color: #222; max-width: 48rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
nav ul { padding-left: 1.2rem; } a { color: #0072b2; }
figure { margin: 1.2rem 0; } figure svg { width: 100%; max-width: 38rem; height: auto; display: block; }
figcaption { font-size: .9rem; color: #555; text-align: left; padding: .3rem 0; }
.scroll { overflow-x: auto; background: linear-gradient(to right, #fff 40%, #fff0) left / 3rem 100% no-repeat local,
  linear-gradient(to left, #fff 40%, #fff0) right / 3rem 100% no-repeat local,
  linear-gradient(to right, #0005, #0000) left / .9rem 100% no-repeat,
  linear-gradient(to left, #0005, #0000) right / .9rem 100% no-repeat; }
.scroll::-webkit-scrollbar { height: .6rem; background: #eee; }
.scroll::-webkit-scrollbar-thumb { background: #999; border-radius: .3rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd; }
thead th { border-bottom: 2px solid #888; } th:first-child, td:first-child { text-align: left; }
@media (max-width: 40rem) {
  th:first-child, td:first-child { position: sticky; left: 0; background: #fff; white-space: normal; }
  .names th:first-child, .names td:first-child { min-width: 6.5rem; }
}
.remark { border-left: 4px solid #e69f00; background: #fff8ea; padding: .4rem .8rem; }
@media print {
  body { max-width: none; margin: 0; font-size: 11px; } nav { display: none; } h2 { break-after: avoid; }
  figure, table { break-inside: avoid; } figure svg { max-width: 15cm; } .scroll { overflow: visible; background: none; }
})";

// A row's name that is longer than this has several lines on a phone.
constexpr std::size_t one_line = 12;  // letters

}  // namespace

Page::Page(std::string title) : title_(std::move(title)) {}

void Page::heading(const std::string& text) {
  ++headings_;
  contents_ += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", headings_, escaped(text));
  body_ += fmt::format("<h2 id=\"s{}\">{}</h2>\n", headings_, escaped(text));
}

void Page::text(const std::string& text) { body_ += fmt::format("<p>{}</p>\n", escaped(text)); }

void Page::remark(const std::string& text) { body_ += fmt::format("<p class=\"remark\">{}</p>\n", escaped(text)); }

void Page::table(const Table& table) {
  const bool names = std::any_of(table.rows.begin(), table.rows.end(),
                                 [](const auto& row) { return !row.empty() && row[0].size() > one_line; });
  body_ += fmt::format("<figure><figcaption>{}</figcaption><div class=\"scroll\" tabindex=\"0\"><table{}>\n<thead><tr>",
                       escaped(table.caption), names ? " class=\"names\"" : "");
  for (const std::string& cell : table.head) body_ += fmt::format("<th>{}</th>", escaped(cell));
  body_ += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    body_ += "<tr>";
    for (const std::string& cell : row) body_ += fmt::format("<td>{}</td>", escaped(cell));
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div></figure>\n";
}

void Page::figure(const std::string& svg, const std::string& caption) {
  body_ += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", svg, escaped(caption));
}

std::string Page::html() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n<nav><ul>\n{2}</ul></nav>\n{3}</body></html>\n",
      escaped(title_), style, contents_, body_);
}

}  // namespace solenoid::report
