import { z } from 'zod'
import { countVote, votes } from '../../src/docs/feedback.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'docs.feedback',
  title: 'Documentation feedback',
  summary: 'Rate a page of the documentation. Votes are only counted; nothing about the voter is stored.',
  route: 'POST /api/docs/feedback',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  rate: 'feedback',
  input: z.strictObject({
    page: z
      .string()
      .max(200)
      .regex(/^\/?[a-z0-9]+(?:[/_-][a-z0-9]+)*$/, 'must be the path of a page, such as docs/quickstart')
      .transform((page) => page.replace(/^\//, ''))
      .describe('Path of the page, such as `docs/quickstart`.'),
    vote: z.enum(votes).describe('True if the page helped.'),
  }),
  output: z.strictObject({
    page: z.string().describe('Path of the page.'),
    up: z.int().describe('Number of up votes.'),
    down: z.int().describe('Number of down votes.'),
  }),
  failures: [],
  example: { page: 'docs/quickstart', vote: 'up' },
  run: ({ database }, input) => countVote(database, input),
})
