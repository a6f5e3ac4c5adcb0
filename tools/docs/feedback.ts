import { z } from 'zod'
import { countVote, votes } from '../../src/docs/feedback.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'docs.feedback',
  title: 'Documentation feedback',
  summary: 'Say whether a page of the documentation helped. Only counted: nothing about the voter is stored.',
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
    vote: z.enum(votes).describe('Whether it helped.'),
  }),
  output: z.strictObject({
    page: z.string().describe('The page.'),
    up: z.int().describe('How often it helped.'),
    down: z.int().describe('How often it did not.'),
  }),
  failures: [],
  example: { page: 'docs/quickstart', vote: 'up' },
  run: ({ database }, input) => countVote(database, input),
})
