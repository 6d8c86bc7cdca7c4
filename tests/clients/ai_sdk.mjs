// One question, with a tool to answer it by; prints the parts of the stream, one a line.
// Takes the address, the API, and whether the items are stored.
import { createOpenAI } from "@ai-sdk/openai";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";

const [address, api, store] = process.argv.slice(1);
const openai = createOpenAI({ baseURL: address, apiKey: "sk-anna-1234" });
const look = tool({
  description: "Look somewhere.",
  inputSchema: jsonSchema({
    type: "object",
    properties: { where: { type: "string" } },
    required: ["where"],
    additionalProperties: false,
  }),
  execute: async () => "forty-two",
});
const { fullStream } = streamText({
  model: openai[api]("thinker-1"),
  prompt: "Hi",
  tools: { look },
  stopWhen: stepCountIs(3),
  maxRetries: 0,
  providerOptions: {
    openai: {
      reasoningSummary: "auto",
      forceReasoning: true,
      ...(store === "stored" ? {} : { store: false }), // stored by default
    },
  },
  onError: () => {}, // told in the stream
});
for await (const part of fullStream) {
  const told = (key, value) => (key === "error" ? String(value) : value);
  process.stdout.write(JSON.stringify(part, told) + "\n");
}
