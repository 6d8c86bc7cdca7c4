// @ts-check
/** Elements, made by hand: what a model said only ever becomes text. */

/** @param {string} id @returns {any} */
export function by(id) {
  return document.getElementById(id);
}

/**
 * @param {string} name @param {Record<string, string>} [attributes] @param {(Node | string)[]} children
 */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same in SVG. @param {string} name @param {Record<string, string | number>} [attributes] @param {(Node | string)[]} children */
export function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element @param {Record<string, string | number>} attributes @param {(Node | string)[]} children
 */
function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** Set an element's text, or hide it when there is none. @param {HTMLElement} element @param {string} words */
export function setText(element, words) {
  if (element.textContent !== words) element.textContent = words;
  element.hidden = words === "";
}
