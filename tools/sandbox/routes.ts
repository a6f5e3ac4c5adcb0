import { z } from 'zod'
import { defineTool } from '../../src/kernel/tool.ts'
import { HONEST_ROUTE, lyingRoutes } from '../../src/providers/sandbox-market.ts'

export default defineTool({
  name: 'sandbox.routes',
  title: 'Routes of swaps',
  summary: 'List the routes that a quote can name: the honest one, and those that lie.',
  description: 'It exists in the sandbox only.',
  route: 'GET /sandbox/routes',
  who: 'public',
  effect: 'read',
  only: 'sandbox',
  input: z.strictObject({}),
  output: z.strictObject({
    routes: z
      .array(
        z.strictObject({
          route: z.string().describe('Name: `route` of POST /api/swaps.'),
          isHonest: z.boolean().describe('True: it does what it says.'),
          description: z.string().describe('What it does with the money.'),
        }),
      )
      .describe('The honest route first.'),
  }),
  failures: [],
  example: {},
  run: async () => ({
    routes: [
      { route: HONEST_ROUTE, isHonest: true, description: 'Buys at the market of the local chain.' },
      ...Object.entries(lyingRoutes).map(([route, description]) => ({ route, isHonest: false, description })),
    ],
  }),
})
