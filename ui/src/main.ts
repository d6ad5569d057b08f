import {mount} from 'svelte';
import './style/base.css';
import App from './app/App.svelte';

mount(App, {target: document.getElementById('app')!});
