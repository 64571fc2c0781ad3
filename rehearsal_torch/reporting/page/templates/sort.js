for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  heads.forEach((head, column) => {
    if (!head.textContent.trim() || head.hasAttribute("data-fixed")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = (a, b) => {
        const [first, second] = [key(a, column), key(b, column)];
        if (first === "" || second === "") return (first === "") - (second === "");
        const order = first.localeCompare(second, "en", { numeric: true });
        const numbers = [Number(first), Number(second)];
        const difference = numbers.some(Number.isNaN) ? order : numbers[0] - numbers[1];
        return down ? -difference : difference;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
