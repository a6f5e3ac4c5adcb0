/** What a newcomer reads above the operations: how to come in, and what all of them share. CommonMark. */

/** The guide of a deployment, with commands that work when pasted. */
export function guide({ origin, mode }: { readonly origin: string; readonly mode: string }): string {
  const key = mode === 'sandbox' ? 'bsk_sandbox_…' : 'bsk_live_…'
  const demo =
    mode === 'sandbox'
      ? [
          '',
          `The sandbox has a demo key: \`curl -s ${origin}/sandbox/credentials\`. A guest with a funded wallet: \`curl -s -X POST ${origin}/api/auth/guest\`.`,
        ]
      : []
  return [
    'A money gateway for people and their agents: wallet, banking, cards, investing, swaps and compliance under a spend policy.',
    '',
    '## How to come in',
    '',
    'One request, one credential; never in the query string.',
    '',
    '**An API key or a session token**',
    '',
    '```sh',
    `curl -s ${origin}/api/wallets -H 'Authorization: Bearer ${key}'`,
    '```',
    ...demo,
    '',
    '**An agent** signs each request with its own Ed25519 key (RFC 9421, `tag="bursar"`); the command line does it:',
    '',
    '```sh',
    "npx bursar agent new --name 'Invoice bot' --out agent.json    # its owner registers the public key: POST /api/agents/keys",
    `npx bursar agent call --key agent.json GET ${origin}/api/wallets`,
    '```',
    '',
    `**MCP**: \`claude mcp add --transport http bursar ${origin}/mcp\`. The client registers itself (OAuth 2.1), and a page asks the owner what it may do; an API key or a signature does as well.`,
    '',
    '## What all operations share',
    '',
    '- Amounts are decimal strings with their asset beside them; times are ISO 8601 UTC.',
    '- `Idempotency-Key` on any mutating route: the same key and body never happen twice, and answer what the first call did.',
    `- Refusals are \`application/problem+json\` (RFC 9457). \`type\` leads to a page about the code: [all of them](${origin}/errors).`,
    '- Every answer has `X-Request-Id`; limits are told by `RateLimit` and, when used up, `Retry-After` in whole seconds.',
  ].join('\n')
}
