// One question, with a tool to answer it by, through the strict stream helper; prints a message a
// line, each with the number of deltas its thinking came in. Takes the address and whether to stream.
import Anthropic from "@anthropic-ai/sdk";

const [address, streams] = process.argv.slice(1);
const client = new Anthropic({ baseURL: address, apiKey: "sk-ant-anna-1234", maxRetries: 0 });
const look = {
  name: "look",
  description: "Look somewhere.",
  input_schema: { type: "object", properties: { where: { type: "string" } } },
};
const ask = async (messages) => {
  const body = {
    model: "thinker-1",
    max_tokens: 2000,
    thinking: { type: "enabled", budget_tokens: 1024 },
    tools: [look],
    messages,
  };
  if (streams !== "stream") return [await client.messages.create(body), 0];
  let deltas = 0;
  const stream = client.messages.stream(body).on("thinking", () => deltas++);
  return [await stream.finalMessage(), deltas];
};
const messages = [{ role: "user", content: "Hi" }];
try {
  for (let round = 0; round < 4; round++) {
    const [message, deltas] = await ask(messages);
    process.stdout.write(JSON.stringify({ ...message, deltas }) + "\n");
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (!calls.length) break;
    const results = calls.map(({ id }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: [{ type: "text", text: "forty-two" }],
    }));
    messages.push({ role: "assistant", content: message.content });
    messages.push({ role: "user", content: results });
  }
} catch (error) {
  process.stdout.write(JSON.stringify({ error: String(error), status: error.status }) + "\n");
}
