import { z } from 'zod'
import { defineTool } from '../../src/kernel/tool.ts'
import { countVote, votes } from '../../src/records/feedback/feedback.ts'

export default defineTool({
  name: 'docs.feedback',
  title: 'Documentation feedback',
  summary: 'Rate a page of the documentation. Votes are only counted; nothing about the voter is stored.',
  description: '404 `not_found` for a page that does not exist. The answer has the counts of the page.',
  route: 'POST /api/docs/feedback',
  who: 'public',
  effect: 'write',
  proof: 'none',
  rate: 'feedback',
  input: z.strictObject({
    page: z
      .string()
      .max(200)
      .regex(/^\/?[a-z0-9]+(?:[/_-][a-z0-9]+)*$/, 'must be the path of a page, such as docs/quick-start')
      .transform((page) => page.replace(/^\//, ''))
      .describe('Path of a page that exists, such as `docs/quick-start`.'),
    vote: z.enum(votes).describe('True if the page helped.'),
  }),
  output: z.strictObject({
    page: z.string().describe('Path of the page.'),
    up: z.int().describe('Number of up votes.'),
    down: z.int().describe('Number of down votes.'),
  }),
  failures: ['not_found'],
  example: { page: 'docs/quick-start', vote: 'up' },
  run: ({ database }, input) => countVote(database, input),
})
