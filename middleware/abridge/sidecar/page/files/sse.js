// @ts-check
/** Takes an event stream's bytes as they come, and gives the data of the events they complete. */
export class Events {
  #decoder = new TextDecoder();
  #rest = "";
  /** @type {string[]} */
  #data = [];

  /** @param {Uint8Array} bytes @returns {string[]} */
  feed(bytes) {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const whole = this.#rest.endsWith("\r") ? this.#rest.slice(0, -1) : this.#rest; // half of \r\n?
    const lines = whole.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + this.#rest.slice(whole.length);
    return lines.flatMap((line) => this.#line(line));
  }

  /** @param {string} line @returns {string[]} */
  #line(line) {
    if (line.startsWith("data:")) {
      this.#data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
    }
    if (line !== "" || this.#data.length === 0) return [];
    const data = this.#data.join("\n");
    this.#data = [];
    return [data];
  }
}
